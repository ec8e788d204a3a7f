import validator from 'vin-validator'

/** vin-validator: right on alphabet and check digit, by others. */
export const oracle = validator
