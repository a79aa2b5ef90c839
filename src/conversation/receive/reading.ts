/** Step 1 of the route: what its files share while one batch is read. */
import type { ChoiceOutcome, Reception } from '../../core/channel.js';
import type { Attachment, InboundBatch } from '../../core/message.js';
import type { Services } from '../services.js';
import type { Pace } from './pace.js';
import type { Rejections } from './rejections.js';

export interface BatchReading {
  services: Services;
  batch: InboundBatch;
  now: number;
  pace: Pace | null;
  rejections: Rejections;
  rejected: Reception['rejected'];
  /** Pending questions and offers ended by its messages: later messages of the same batch do not answer them. */
  ended: Set<number | string>;
  /** Presses by people who may not choose. */
  refused: [string, ChoiceOutcome][];
}

/** The text for the persona, with files listed even before they are fetched. */
export function worded({ media }: Services, text: string, attachments: Attachment[]) {
  return { text: media.tell(text, attachments), words: text, attachments };
}
