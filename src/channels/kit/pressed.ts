/** What whoever pressed a button is told, and nobody else. */
import type { ChoiceOutcome } from '../../core/channel.js';

/** null: nothing, for what follows says it. */
export const TOLD: Readonly<Record<ChoiceOutcome, string | null>> = {
  taken: null,
  over: 'This is over.',
  'not yours': 'This is for somebody else to decide.',
};
