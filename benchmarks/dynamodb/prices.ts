/** USD for a million request units on demand, us-east-1, Standard table class, September 2026. */
export const usdPerMillionWrites = 0.625
export const usdPerMillionReads = 0.125
