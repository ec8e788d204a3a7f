/**
 * Recorded facts: rows that were seen, and real vehicles with make, model and year.
 *
 * @module
 */

import { readFileSync } from 'node:fs'

/** What a row says; codes as vPIC lists them. */
export interface Fact {
  readonly codes: readonly number[]
  readonly make?: string
  readonly model?: string
  readonly year?: number
  readonly suggestedVin?: string
  readonly possibleValues?: string
  readonly vehicleType?: string
}

/** Rows seen in public recordings. */
export const recordedRows: ReadonlyMap<string, Fact> = new Map<string, Fact>([
  ['1HGCM82633A004352', { codes: [0], make: 'HONDA', model: 'Accord', year: 2003, vehicleType: 'PASSENGER CAR' }],
  ['1FTMW1T88MFA00001', { codes: [0], make: 'FORD', model: 'F-150', year: 2021, vehicleType: 'TRUCK ' }],
  ['1FTFW1ET5DFC10312', { codes: [1], make: 'FORD', model: 'F-150', year: 2013, vehicleType: 'TRUCK ' }],
  ['3C6TRVAG6JE100000', { codes: [1], make: 'RAM', model: 'Promaster 1500', year: 2018, vehicleType: 'TRUCK ' }],
  ['5UXWX7C5XBA123456', { codes: [1], make: 'BMW', model: 'X3', year: 2011 }],
  ['5UXWX7C5*BA', { codes: [6], make: 'BMW', model: 'X3', year: 2011 }],
  ['SAL00000000000000', { codes: [1, 8, 11, 400] }],
  ['ZZZCM82633A004352', { codes: [1, 7] }],
  ['12345678901234567', { codes: [1, 11, 14, 400], make: 'CHEVROLET' }],
  ['VF1RFB00X56123456', { codes: [1, 8] }],
  ['WDC1668731A298010', { codes: [8], make: 'MERCEDES-BENZ', model: 'M-Class' }],
  ['U5YH2519LKL016670', { codes: [1, 8, 400] }],
  [
    '1FBNE3BE1CDB23596',
    {
      codes: [1, 3, 14],
      make: 'FORD',
      model: 'E-350',
      year: 2012,
      suggestedVin: '1FBNE3BL1CDB23596',
      possibleValues: '(8:L)',
    },
  ],
  [
    '5YJSA3DS*EF',
    {
      codes: [5, 6, 14],
      make: 'TESLA',
      model: 'Model S',
      year: 2014,
      suggestedVin: '5YJSA3D!*EF!',
      possibleValues: '(8:12)(12:ABFPRS)',
    },
  ],
  ['1FA6P8C0!M!100001', { codes: [1, 4, 14, 400], make: 'FORD', model: 'Mustang', year: 2021 }],
])

/** A real vehicle. */
export interface Vehicle {
  readonly vin: string
  readonly make: string
  readonly model: string
  readonly year: number
}

/** 236 real vehicles. */
export const vehicles: readonly Vehicle[] = JSON.parse(
  readFileSync(new URL('../../vin/vins.json', import.meta.url), 'utf8'),
)
