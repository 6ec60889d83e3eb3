// A question is searched by its own words: words that every page has are left out, and endings that
// the index does not keep are cut, because the search looks for beginnings of the index's words.
(() => {
  const common = new Set(("a about all an and any are as at be been but by can could do does for from get has have how i if in " +
    "into is it its like me mean my no not of on one or our same should so some than that the their them there these they " +
    "thing this to use used was we were what when where which who why will with would you your").split(" "));
  const stem = word => {
    const cut = word.length < 5 ? word : word.replace(/(?:ies|ing|ed|s)$/, "");
    const short = word.length < 5 ? word.replace(/([^s])s$/, "$1") : cut;
    return short.length > 4 ? short.replace(/[ey]$/, "") : short;
  };
  const asked = text => {
    const words = text.toLowerCase().replace(/['’]s\b/g, "").split(/[^\p{L}\p{N}_.-]+/u).filter(Boolean);
    const own = words.filter(word => !common.has(word));
    return own.length > 1 ? own.map(stem).join(" ") : text;
  };
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    const isQuery = message && message.type === 2 && typeof message.data === "string" && !/["+*~^-]/.test(message.data);
    return send.call(this, isQuery ? { ...message, data: asked(message.data) } : message, ...rest);
  };
})();
