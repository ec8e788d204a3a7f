/**
 * How scripts are put together: a script's text is its header, the parts it uses with what those need, and its own body.
 * Redis keeps it compiled under the digest of its text; parts that a script does not use cost it nothing.
 *
 * @module
 */

import { createHash } from 'node:crypto'

/** Some Lua functions that belong together, and the parts that they call. */
export interface Part {
  readonly name: string
  readonly lua: string
  readonly needs: readonly Part[]
  /** The parts that its text is made of, if it is not a piece by itself. */
  readonly holds: readonly Part[]
}

/** A script as Redis knows it. */
export interface Script {
  readonly name: string
  /** Comments: what KEYS and ARGV are, and what is answered. */
  readonly header: string
  /** The parts in its text, in their order. */
  readonly parts: readonly Part[]
  readonly body: string
  /** The whole text. */
  readonly lua: string
  /** What EVALSHA calls it by. */
  readonly sha: string
}

/** What a script is made of. */
interface ScriptSource {
  readonly header: string
  readonly uses: readonly Part[]
  readonly body: string
}

/** A part. */
export function part(name: string, needs: readonly Part[], lua: string): Part {
  return { name, needs, holds: [], lua: lua.trim() }
}

/** A script. */
export function script(name: string, { header, uses, body }: ScriptSource): Script {
  const parts = ordered(uses, [])
  const [frame, ...others] = parts.map(({ lua }) => lua)
  // Within a function of its own what the parts take from the frame costs a copy; beside it, a search through all that is open.
  const main = ['local function main()', ...others, body.trim(), 'end', 'return main()']
  const lua = [header.trim(), frame, ...main].join('\n')
  const sha = createHash('sha1').update(lua).digest('hex')
  return { name, header: header.trim(), parts, body: body.trim(), lua, sha }
}

/**
 * A part whose one function, named like the part, is set up when it is first called: calls that don't come to that need not
 * pay for its many small functions.
 *
 * @param within - what the script has anyway
 */
export function lazily(part: Part, within: readonly Part[]): Part {
  const { name } = part
  const holds = ordered([part], ordered(within, []))
  const lua = [
    `local ${name}_`,
    `local function ${name}(...)`,
    `if ${name}_ then return ${name}_(...) end`,
    ...holds.map(({ lua }) => lua),
    `${name}_ = ${name}`,
    `return ${name}(...)`,
    'end',
  ].join('\n')
  return { name, needs: within, holds, lua }
}

/** The parts and what they need, each once, behind what it needs; without those that are there already. */
function ordered(parts: readonly Part[], there: readonly Part[]): readonly Part[] {
  const found = new Set<Part>()
  const add = (part: Part) => {
    if (there.includes(part) || found.has(part)) return
    for (const needed of part.needs) add(needed)
    found.add(part)
  }
  for (const part of parts) add(part)
  return [...found]
}
