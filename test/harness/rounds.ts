/** What is tried by chance: a few times in `npm test`, and often in `npm run test:long`, which sets COTERIE_LONG. */
export function rounds({ few, many }: { few: number; many: number }): number {
  return process.env.COTERIE_LONG === undefined ? few : many;
}
