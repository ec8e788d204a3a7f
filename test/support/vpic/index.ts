/**
 * A local stand-in for NHTSA's vPIC.
 *
 * @module
 */

export { flatRow } from './answer.ts'
export { recordedRows, vehicles } from './facts.ts'
export { type Fault, randomOf, seededFaults } from './faults.ts'
export { startVpic, type VpicStandIn } from './server.ts'
