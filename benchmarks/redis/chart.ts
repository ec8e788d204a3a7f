/**
 * The chart beside the table: CPU per job of each system, Node's and Redis's part stacked, a group for each case.
 *
 * @module
 */

/** One bar. */
export interface Bar {
  readonly system: string
  readonly nodeUs: number
  readonly redisUs: number
}

const colours = ['#8a8f98', '#2f6fde', '#d9822b', '#8c5cc9', '#3a9d5d']
const width = 960
const left = 250
const barHeight = 14
const groupGap = 22

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** An SVG. The darker part of a bar is Node's, the lighter one Redis's. */
export function chart(
  title: string,
  groups: readonly { readonly name: string; readonly bars: readonly Bar[] }[],
): string {
  const longest = Math.max(...groups.flatMap(({ bars }) => bars.map(({ nodeUs, redisUs }) => nodeUs + redisUs)))
  const scale = (width - left - 190) / longest
  const parts: string[] = []
  let y = 40
  for (const { name, bars } of groups) {
    parts.push(`<text x="10" y="${y + 12}" font-weight="bold">${escaped(name)}</text>`)
    for (const [index, { system, nodeUs, redisUs }] of bars.entries()) {
      const colour = colours[index % colours.length]
      const node = nodeUs * scale
      const redis = redisUs * scale
      y += barHeight + 2
      parts.push(
        `<text x="${left - 8}" y="${y + 11}" text-anchor="end">${escaped(system)}</text>`,
        `<rect x="${left}" y="${y}" width="${node.toFixed(1)}" height="${barHeight}" fill="${colour}"/>`,
        `<rect x="${(left + node).toFixed(1)}" y="${y}" width="${redis.toFixed(1)}" height="${barHeight}" fill="${colour}" opacity="0.5"/>`,
        `<text x="${(left + node + redis + 6).toFixed(1)}" y="${y + 11}">${nodeUs.toFixed(0)} + ${redisUs.toFixed(0)} µs</text>`,
      )
    }
    y += barHeight + groupGap
  }
  const style = 'font-family="system-ui, sans-serif" font-size="11"'
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 10}" ${style}><rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="15">${escaped(title)}</text>${parts.join('')}</svg>\n`
}
