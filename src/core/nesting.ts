/**
 * How deep objects and lists lie in one another. JSON.parse reads any depth; JSON.stringify, zod and whatever else calls
 * itself for each level overflow the stack at a few thousand. So what comes from outside is looked at first, without a stack.
 */

/** No honest arguments are nested deeper: those that are reach no tool. */
export const DEEPEST = 100;

/** Whether something lies more than `most` objects and lists deep. `value` is as JSON.parse makes it. */
export function isNestedDeeper(value: unknown, most: number = DEEPEST): boolean {
  let level: unknown[] = [value];
  for (let depth = 1; depth <= most; depth++) {
    const next: unknown[] = [];
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue;
      for (const inner of Object.values(each))
        if (typeof inner === 'object' && inner !== null) next.push(inner);
    }
    if (next.length === 0) return false;
    level = next;
  }
  return true;
}
