/** The checksum that DynamoDB sends with each answer, and that the SDK checks. Node 20 has none of its own. */

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

export function crc32(text: string): number {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) crc = (crc >>> 8) ^ table[(crc ^ byte) & 0xff]!
  return (crc ^ 0xffffffff) >>> 0
}
