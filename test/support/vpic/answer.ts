/**
 * What vPIC says of a VIN: from recorded facts, and for other VINs by its documented rules. Written apart from the preset's
 * own checks, so that neither can hide a fault of the other.
 *
 * @module
 */

import { type Fact, recordedRows, vehicles } from './facts.ts'
import { flatFields } from './fields.ts'

const texts: Record<number, string> = {
  0: '0 - VIN decoded clean. Check Digit (9th position) is correct',
  1: '1 - Check Digit (9th position) does not calculate properly',
  3: '3 - VIN corrected, error in one position (assuming Check Digit is correct)',
  4: '4 - VIN corrected, error in one position only (indicated by ! in Suggested VIN), multiple matches found',
  5: '5 - VIN has errors in few positions',
  6: '6 - Incomplete VIN',
  7: '7 - Manufacturer is not registered with NHTSA for sale or importation in the U.S. for use on U.S roads',
  8: '8 - No detailed data available currently',
  11: '11 - Incorrect Model Year - Position 10 does not match valid model year codes (I, O, Q, U, Z, 0)',
  12: '12 - Model Year warning - the model year entered differs from the one in the VIN',
  14: '14 - Unable to provide information for some of the characters in the VIN',
  400: '400 - Invalid Characters Present',
}

const makeByWmi = new Map(vehicles.map(({ vin, make }) => [vin.slice(0, 3), make.toUpperCase()]))
const modelByPattern = new Map(vehicles.map(({ vin, model }) => [vin.slice(0, 8), model]))
const vehicleByVin = new Map(vehicles.map((vehicle) => [vehicle.vin, vehicle]))
const yearCodes = 'ABCDEFGHJKLMNPRSTVWXY123456789'
const weights = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2]
const letterValues = 'A1B2C3D4E5F6G7H8J1K2L3M4N5P7R9S2T3U4V5W6X7Y8Z9'

function isCheckDigitRight(vin: string): boolean {
  let sum = 0
  for (const [index, character] of [...vin].entries()) {
    const at = letterValues.indexOf(character)
    const value = /\d/.test(character) ? Number(character) : Number(letterValues[at + 1])
    sum += (Number.isNaN(value) || (at === -1 && !/\d/.test(character)) ? 0 : value) * weights[index]!
  }
  return '0123456789X'[sum % 11] === vin[8]
}

/** The fact about a VIN, upper case. */
function factOf(vin: string, askedYear: number | null = null): Fact {
  const known = recordedRows.get(vin) ?? factOfVehicle(vin) ?? factByRules(vin)
  if (askedYear === null || known.year === undefined || known.year === askedYear) return known
  return { ...known, codes: [...known.codes, 12].sort((a, b) => a - b) }
}

function factOfVehicle(vin: string): Fact | undefined {
  const vehicle = vehicleByVin.get(vin)
  if (vehicle === undefined) return undefined
  return { codes: [0], make: vehicle.make.toUpperCase(), model: vehicle.model, year: vehicle.year }
}

function factByRules(vin: string): Fact {
  const codes = new Set<number>()
  const whole = vin.length === 17 && !vin.includes('*')
  if (!whole) codes.add(6)
  if (/[^0-9A-HJ-NPR-Z*]/.test(vin) || /[^0-9X*]/.test(vin[8] ?? '0')) codes.add(400)
  if (vin[9] !== undefined && vin[9] !== '*' && !yearCodes.includes(vin[9])) codes.add(11).add(400)
  if (whole && !isCheckDigitRight(vin)) codes.add(1)
  const make = makeByWmi.get(vin.slice(0, 3))
  const model = modelByPattern.get(vin.slice(0, 8))
  if (make === undefined) codes.add(7)
  else if (model === undefined) codes.add(8)
  if (codes.size === 0) codes.add(0)
  const index = yearCodes.indexOf(vin[9] ?? ' ')
  const year = index === -1 ? undefined : (/\d/.test(vin[6] ?? '') ? 1980 : 2010) + index
  return {
    codes: [...codes].sort((a, b) => a - b),
    ...(make !== undefined && { make }),
    ...(make !== undefined && model !== undefined && { model }),
    ...(year !== undefined && { year }),
  }
}

/** The flat row of a VIN: text fields only, missing ones empty. */
export function flatRow(asked: string, askedYear: number | null = null): Record<string, string> {
  const vin = asked.trim().toUpperCase()
  const fact = factOf(vin, askedYear)
  const row = Object.fromEntries(flatFields.map((name) => [name, '']))
  return {
    ...row,
    ErrorCode: fact.codes.join(','),
    ErrorText: fact.codes
      .map((code) => texts[code])
      .join('; ')
      .slice(0, 500),
    Make: fact.make ?? '',
    Model: fact.model ?? '',
    ModelYear: fact.year === undefined ? '' : String(fact.year),
    SuggestedVIN: fact.suggestedVin ?? '',
    PossibleValues: fact.possibleValues ?? '',
    VehicleType: fact.vehicleType ?? '',
    VehicleDescriptor: `${vin.slice(0, 8)}*${vin.slice(9, 11)}`,
    VIN: vin,
  }
}

/** The rows of the endpoint that answers by variables. */
export function variableRows(asked: string, askedYear: number | null): Record<string, unknown>[] {
  const row = flatRow(asked, askedYear)
  return Object.entries(row).map(([name, value], index) => ({
    Value: value === '' ? null : value,
    ValueId: '',
    Variable: name.replace(/([a-z])([A-Z])/g, '$1 $2'),
    VariableId: index + 1,
  }))
}
