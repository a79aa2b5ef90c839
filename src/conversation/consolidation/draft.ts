/** A copy of one persona's tiers for a model to rewrite: nothing reaches the file before the whole of it was checked. */
import type { Memory, Tier } from '../../core/memory.js';

export type Tiers = Record<Tier, string>;

export const TIERS: readonly Tier[] = [1, 2, 3];

export interface Draft {
  /** Reads and writes of tiers stay in the draft; everything else is read from the files. */
  memory: Memory;
  /** As they stand in the draft. */
  tiers: Tiers;
}

export function draftOf(memory: Memory, given: Tiers): Draft {
  const tiers = { ...given };
  return {
    tiers,
    memory: {
      ...memory,
      readAll: async () => TIERS.map((tier) => `## Tier ${tier}\n\n${tiers[tier]}`).join('\n\n'),
      readTier: async (_owner, tier) => tiers[tier],
      async writeTier(_owner, tier, content, seen) {
        const current = tiers[tier];
        // As in the file: only what was seen whole may be replaced.
        if (current !== (seen !== undefined && 'text' in seen ? seen.text : '')) {
          return { kind: 'changed', current };
        }
        tiers[tier] = content.trim();
        return { kind: 'written', text: tiers[tier] };
      },
    },
  };
}
