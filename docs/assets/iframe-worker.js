// Browsers start no worker for a page that was opened from a disk.  There the search runs in a
// hidden frame instead, which talks as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #waiting = [];
    #ready = false;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      const script = inside.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        this.#ready = true;
        this.#waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (!this.#ready) this.#waiting.push(data);
      else this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
