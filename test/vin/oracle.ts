import { createRequire } from 'node:module'

/** vin-validator: right on alphabet and check digit, by others. */
export const oracle: { validate(vin: string): boolean } = createRequire(import.meta.url)('vin-validator')
