/** Rounds of randomised tests: few in `npm test`, many in `npm run test:long`, which sets COTERIE_LONG. */
export function rounds({ few, many }: { few: number; many: number }): number {
  return process.env.COTERIE_LONG === undefined ? few : many;
}
