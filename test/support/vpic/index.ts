/**
 * A local stand-in for NHTSA's vPIC.
 *
 * @module
 */

export { flatRow } from './answer.ts'
export { type Fact, recordedRows, type Vehicle, vehicles } from './facts.ts'
export { type Fault, type FaultPlan, type FaultRequest, randomOf, seededFaults } from './faults.ts'
export { type SeenCall, type StandInOptions, startVpic, VpicStandIn } from './server.ts'
