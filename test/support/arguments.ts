/**
 * Options of the developers' commands: what is not as it should be ends the command with a word, and is never taken for a default.
 *
 * @module
 */

type Values = { readonly [name: string]: unknown }

function refuse(message: string): never {
  console.error(message)
  process.exit(2)
}

/** A whole number from `min`. */
export function whole<Name extends string>(
  values: Values & { readonly [name in Name]?: unknown },
  name: Name,
  min = 0,
): number {
  const given = values[name]
  const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : Number.NaN
  return Number.isSafeInteger(value) && value >= min ? value : refuse(`--${name} must be a whole number from ${min}`)
}

/** A number above 0. */
export function above<Name extends string>(values: Values & { readonly [name in Name]?: unknown }, name: Name): number {
  const value = Number(values[name])
  return value > 0 && value < Number.POSITIVE_INFINITY ? value : refuse(`--${name} must be a number above 0`)
}

/** The seed that was given, or one of now. */
export function seedOf(values: Values & { readonly seed?: string | undefined }): number {
  return values.seed === undefined ? Date.now() % 2 ** 31 : whole(values, 'seed')
}

/** One of a few words. */
export function oneOf<Choice extends string, Name extends string>(
  values: Values & { readonly [name in Name]?: unknown },
  name: Name,
  choices: readonly Choice[],
): Choice {
  const found = choices.find((choice) => choice === values[name])
  return found ?? refuse(`--${name} must be one of ${choices.join(', ')}`)
}

/** Some of a few words, between commas; all if nothing is given. */
export function someOf<Choice extends string, Name extends string>(
  values: Values & { readonly [name in Name]?: string | undefined },
  name: Name,
  choices: readonly Choice[],
): readonly Choice[] {
  const given: string | undefined = values[name]
  return given === undefined
    ? choices
    : given.split(',').map((word) => oneOf<Choice, Name>({ ...values, [name]: word }, name, choices))
}
