// What hyparquet reads and looks up, with its Bloom filters on: one line of JSON a question.
// A value that is looked up is one that hyparquet has read. `utf8: false`: see docs/compatibility.md.
import { createInterface } from 'node:readline'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const utf8 = process.env.HYPARQUET_UTF8 === '1'

function text(value) {
  return JSON.stringify(value, (_, it) => typeof it === 'bigint' ? `${it}n` : it) ?? 'undefined'
}

async function read(path, filter) {
  const file = await asyncBufferFromFile(path)
  return parquetReadObjects({ file, compressors, utf8, filter, useBloomFilters: true })
}

async function attempt(ask) {
  try {
    return await ask()
  } catch {
    return null
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [path, places] = JSON.parse(line)
  const values = await attempt(async () => (await read(path)).map(row => row.x))
  const present = (values ?? []).filter(it => it !== null && it !== undefined)
  const counts = await attempt(async () => {
    const found = []
    for (const place of places) {
      const value = present[Number(place) % present.length]
      found.push((await read(path, { x: { $eq: value } })).length)
    }
    return found
  })
  console.log(JSON.stringify([values && values.map(text).sort(), values && counts]))
}
