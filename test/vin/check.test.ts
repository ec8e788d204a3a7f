import fc from 'fast-check'
import t from 'tap'
import {
  checkDigitOf,
  checkVin,
  isCheckDigitMandatory,
  modelYearsOf,
  normalizeVin,
  passesCheckDigit,
  vinAlphabet,
  vinId,
  wmiOf,
} from '../../src/presets/vin/index.ts'
import { vehicles } from '../support/vpic/index.ts'
import { oracle } from './oracle.ts'

const sample = '1HGCM82633A004352'
const now = Date.UTC(2025, 5, 1)

t.test(
  '236 real VINs: accepted as they are, with the right check digit, no warning, and their model year',
  async (t) => {
    t.equal(vehicles.length, 236)
    for (const { vin, year } of vehicles) {
      t.strictSame(checkVin(vin), { ok: true, vin, partial: false, warnings: [], suggestions: [] })
      t.ok(passesCheckDigit(vin), vin)
      t.equal(modelYearsOf(vin, now)[0], year, `${vin}: ${year}`)
      t.ok(oracle.validate(vin), `${vin}: the oracle agrees`)
    }
  },
)

t.test('check digit and alphabet: as vin-validator has them, for any 17 characters', async (t) => {
  t.equal(vinAlphabet, '0123456789ABCDEFGHJKLMNPRSTUVWXYZ')
  const character = fc.constantFrom(...vinAlphabet)
  const texts = fc.array(character, { minLength: 17, maxLength: 17 }).map((characters) => characters.join(''))
  fc.assert(
    fc.property(texts, (text) => {
      const expected = checkDigitOf(text)
      const right = `${text.slice(0, 8)}${expected}${text.slice(9)}`
      return oracle.validate(text) === passesCheckDigit(text) && oracle.validate(right) && passesCheckDigit(right)
    }),
    { numRuns: 2_000 },
  )
  for (const bad of ['', 'A', `${sample}1`, sample.replace('H', 'I'), sample.toLowerCase()])
    t.equal(checkDigitOf(bad), null)
})

t.test('normalising takes off what is around a VIN', async (t) => {
  const around = [
    sample,
    sample.toLowerCase(),
    ` ${sample}\t\r\n`,
    '1HG CM8 263 3A0 043 52',
    '1HG-CM826-33A004352',
    '1HG\u2013CM826\u201433A\u2212004352',
    `\ufeff${sample}`,
    `\u200b1HG\u200dCM82633A0043\u206052`,
    `1HGCM\u00a082633A004352`,
    `"${sample}"`,
    `'${sample}'`,
    `'${sample}`,
    `\u201c${sample}\u201d`,
    `\u00ab ${sample} \u00bb`,
    `="${sample}"`,
    `VIN: ${sample}`,
    `vin:${sample}`,
    `VIN ${sample}`,
    `VIN# ${sample}`,
    `VIN No. ${sample}`,
    `"VIN: ${sample}"`,
    `VIN: "${sample}"`,
    [...sample].map((character) => String.fromCodePoint(character.codePointAt(0)! + 0xfee0)).join(''),
    `${sample}\0\0\0`,
    `\u001d${sample}\r`,
    `\u202a${sample}\u202c`,
    `1HGCM8\u00ad2633A004352`,
    `I${sample}`,
    `i${sample.toLowerCase()}`,
  ]
  for (const raw of around) {
    t.equal(normalizeVin(raw), sample, JSON.stringify(raw))
    t.equal(vinId(raw), vinId(sample), `${JSON.stringify(raw)}: the same id`)
  }
})

t.test('normalising corrects nothing', async (t) => {
  const kept = ['1HGCM82633A00435O', '1HGCM82633A00435Q', 'I1HGCM82633A004353', '\u0410BC', 'stra\u00dfe1', '\u0131']
  for (const raw of kept)
    t.equal(
      normalizeVin(raw),
      raw.replace(/[a-z]/g, (letter) => letter.toUpperCase()),
      raw,
    )
  const long = 'a'.repeat(1_025)
  t.equal(normalizeVin(long), long, 'what is far too long is not looked at')
})

t.test('normalising twice is normalising once, for any text', async (_t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (raw) => {
      const once = normalizeVin(raw)
      const check = checkVin(raw)
      return check.ok ? check.vin === once && normalizeVin(once) === once : check.problems.length > 0
    }),
    { numRuns: 2_000 },
  )
})

t.test('what is no text is refused, not thrown at', async (t) => {
  for (const raw of [undefined, null, 5, 12345678901234567n, true, {}, [], Symbol('s'), () => sample]) {
    const check = checkVin(raw)
    t.match(check, { ok: false, vin: '', problems: [{ kind: 'not_text' }], suggestions: [] })
  }
  for (const raw of ['', '   ', '\ufeff', '""', 'VIN:', '---']) {
    t.match(checkVin(raw), { ok: false, vin: '', problems: [{ kind: 'empty' }] }, JSON.stringify(raw))
  }
})

t.test('length', async (t) => {
  for (const raw of ['1', sample.slice(0, 16), `${sample}2`, 'A'.repeat(60)]) {
    const check = checkVin(raw)
    t.match(check, { ok: false, problems: [{ kind: 'length', length: raw.length }] }, raw)
  }
  const check = checkVin('x'.repeat(5_000_000))
  t.match(check, { ok: false, vin: '', problems: [{ kind: 'length', length: 5_000_000 }] })
  t.ok(JSON.stringify(checkVin('й'.repeat(1_000))).length < 4_000, 'a strange text is told in few words')
})

t.test('characters: the position, the code point, and a suggestion only for I, O, Q', async (t) => {
  const check = checkVin('1HGCM82633AO0435Q')
  t.match(check, {
    ok: false,
    problems: [
      { kind: 'character', position: 12, codePoint: 'U+004F' },
      { kind: 'character', position: 17, codePoint: 'U+0051' },
    ],
    suggestions: ['1HGCM82633A004350'],
  })
  const cyrillic = checkVin('1HGCM82633\u0410004352')
  t.match(cyrillic, {
    ok: false,
    problems: [{ kind: 'character', position: 11, codePoint: 'U+0410' }],
    suggestions: [],
  })
  t.notMatch(JSON.stringify(!cyrillic.ok && cyrillic.problems), '\u0410', 'the look-alike itself is not shown')
  t.match(checkVin('1HGCM82633\u0391004352'), { ok: false, problems: [{ codePoint: 'U+0391' }] }, 'Greek')
  t.match(checkVin('1HGCM82633\u00c4004352'), { ok: false, problems: [{ codePoint: 'U+00C4' }] }, 'an umlaut')
  t.match(checkVin('1HGCM82633\u{1f600}004352'), { ok: false, problems: [{ position: 11, codePoint: 'U+1F600' }] })
  t.match(checkVin('\u0131HGCM82633A004352'), { ok: false, problems: [{ codePoint: 'U+0131' }] }, 'a dotless i')
  t.match(checkVin('1HGCM82633A0*4352'), { ok: false, problems: [{ codePoint: 'U+002A' }] }, '* without partial')
  t.match(checkVin('1HGCM82633A0_4352'), { ok: false, problems: [{ codePoint: 'U+005F' }] })
})

t.test('placeholders, by name', async (t) => {
  for (const character of vinAlphabet) {
    t.match(checkVin(character.repeat(17)), { ok: false, problems: [{ kind: 'placeholder' }] }, character)
  }
  for (const text of ['12345678901234567', '01234567890123456', '98765432109876543', 'ABCDEFGHJKLMNPRST']) {
    t.match(checkVin(text), { ok: false, problems: [{ kind: 'placeholder' }] }, text)
  }
  t.ok(oracle.validate('1'.repeat(17)) && oracle.validate('0'.repeat(17)), 'both pass every rule of form')
  t.match(checkVin('*'.repeat(17), { partial: true }), { ok: false })
})

t.test('a wrong check digit is a warning: mandatory in North America and China, elsewhere not', async (t) => {
  const american = checkVin('1FTFW1ET5DFC10312')
  t.match(american, { ok: true, warnings: [{ kind: 'check_digit', expected: '9', mandatory: true }] })
  const french = checkVin('VF1RFB00X56123456')
  t.match(french, { ok: true, warnings: [{ kind: 'check_digit', expected: '3', mandatory: false }], suggestions: [] })
  t.match(checkVin('LSVAA2A57D1234567'), { ok: true, warnings: [{ kind: 'check_digit', mandatory: true }] })
  const regions = {
    '1': true,
    '2': true,
    '3': true,
    '4': true,
    '5': true,
    L: true,
    '7SA': true,
    '7FA': true,
    '70A': true,
  }
  const others = {
    '7A8': false,
    '75X': false,
    W: false,
    J: false,
    '6': false,
    '8': false,
    '9': false,
    S: false,
    K: false,
  }
  for (const [start, mandatory] of Object.entries({ ...regions, ...others })) {
    t.equal(isCheckDigitMandatory(start.padEnd(17, '0')), mandatory, start)
  }
})

t.test('position 10: U, Z and 0 are no model years', async (t) => {
  t.match(checkVin('SAL00000000000000'), {
    ok: true,
    warnings: [
      { kind: 'check_digit', mandatory: false },
      { kind: 'model_year_code', mandatory: false },
    ],
  })
  t.strictSame(modelYearsOf('SAL00000000000000', now), [])
  for (const code of 'UZ0') {
    t.match(checkVin(`1HGCM8263${code}A004352`), {
      ok: true,
      warnings: [{}, { kind: 'model_year_code', mandatory: true }],
    })
  }
})

t.test(
  'suggestions for a wrong check digit: at most five, all with a right one, the true VIN among them',
  async (t) => {
    let found = 0
    let tried = 0
    for (const { vin } of vehicles) {
      if (!isCheckDigitMandatory(vin)) continue
      for (const [from, to] of [
        ['8', 'B'],
        ['5', 'S'],
        ['6', 'G'],
      ] as const) {
        const wrong = vin.replace(from, to)
        if (wrong === vin || passesCheckDigit(wrong) || !isCheckDigitMandatory(wrong)) continue
        const check = checkVin(wrong)
        if (!check.ok) throw new Error(`${wrong} was refused`)
        t.ok(check.suggestions.length <= 5 && check.suggestions.every(passesCheckDigit), wrong)
        t.equal(check.vin, wrong, 'never applied')
        tried++
        if (check.suggestions.includes(vin)) found++
      }
    }
    t.ok(tried > 100 && found === tried, `${found} of ${tried} misreadings found`)
  },
)

t.test('partial VINs only where asked for', async (t) => {
  for (const raw of ['5UXWX7C5*BA', '5YJSA3DS*EF', '5ux wx7c5*ba']) {
    t.match(checkVin(raw), { ok: false }, raw)
    t.match(checkVin(raw, { partial: true }), { ok: true, partial: true, warnings: [] }, raw)
  }
  t.match(checkVin('5U', { partial: true }), { ok: false, problems: [{ kind: 'length' }] })
  t.match(checkVin(sample, { partial: true }), { ok: true, partial: false })
})

t.test('model years: the position-7 rule, and never later than next year plus one', async (t) => {
  const at = (seventh: string, tenth: string, year = 2025) =>
    modelYearsOf(`1GNEK1${seventh}00${tenth}R000001`, Date.UTC(year, 0, 1))
  t.strictSame(at('3', 'A'), [1980, 2010])
  t.strictSame(at('A', 'A'), [2010, 1980])
  t.strictSame(at('A', '9'), [2009], '2039 is no reading yet')
  t.strictSame(at('3', '9'), [2009])
  t.strictSame(at('A', 'V'), [2027, 1997], 'next year plus one')
  t.strictSame(at('A', 'W'), [1998])
  t.strictSame(at('A', 'W', 2026), [2028, 1998])
  t.strictSame(modelYearsOf('1GN', now), [])
  t.strictSame(modelYearsOf('U5YH2519LKL016670', now), [2019, 1989], 'a Kia for Europe: position 7 says nothing')
  t.strictSame(modelYearsOf('5YJSA3D*!EF', now), [2014, 1984].slice(0, 2), 'an unknown position 7')
})

t.test('makers: position 3 = 9 takes in positions 12–14', async (t) => {
  t.equal(wmiOf(sample), '1HG')
  t.equal(wmiOf('1A9CM82633A004352'), '1A9004')
})

t.test('ids: of normalised VIN, model year and policy version, and nothing else', async (t) => {
  t.match(vinId(sample), /^[\w-]{43}$/)
  t.equal(vinId(sample), vinId(` ${sample.toLowerCase()} `, { modelYear: null }))
  const ids = [
    vinId(sample),
    vinId(sample, { modelYear: 2003 }),
    vinId(sample, { modelYear: 2004 }),
    vinId(sample, { policy: 'mine-2' }),
    vinId('1HGCM82633A004353'),
    vinId('5UXWX7C5*BA'),
  ]
  t.equal(new Set(ids).size, ids.length)
  for (const vin of ['', 'nonsense', '1'.repeat(17), `${sample}I`]) {
    t.throws(() => vinId(vin), { name: 'InvalidArgumentError', field: 'vin' }, vin)
  }
  for (const modelYear of [1979, 2101, 2003.5, Number.NaN, '2003' as unknown as number]) {
    t.throws(() => vinId(sample, { modelYear }), { name: 'InvalidArgumentError', field: 'options.modelYear' })
  }
  t.throws(() => vinId(sample, { policy: '' }), { name: 'InvalidArgumentError' })
})
