/** What less text may mend: a request to save or sum up that does not fit the model's window, or takes it too long. */
import type { Fault } from '../../core/errors.js';

/** So often the text is halved. */
export const MOST_HALVINGS = 4;

export const READ_IN_PART = 'the model server read only a part of it';

export function isTooMuch({ code }: Fault): boolean {
  return code === 'context_too_long' || code === 'model_silent';
}
