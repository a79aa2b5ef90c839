/** What the fake Discord took of us, and whether we can know that it did. */
import type { ServerResponse } from 'node:http';
import type { SentMessage } from './discord-words.js';

export interface Ledger {
  sent: SentMessage[];
  /** From here on Discord has it, whatever becomes of the answer. */
  take(message: Omit<SentMessage, 'at' | 'edits' | 'changes' | 'answered' | 'cut'>): SentMessage;
  find(id: string): SentMessage | undefined;
  /** Notes whether the answer gets out. */
  track(message: SentMessage, response: ServerResponse): void;
}

export function createLedger(parts: { now(): number; onTaken(): void; look(): void }): Ledger {
  const sent: SentMessage[] = [];
  const byId = new Map<string, SentMessage>();
  return {
    sent,
    take(message) {
      const nothingYet = { edits: 0, changes: [], answered: false, cut: false };
      const taken: SentMessage = { ...message, at: parts.now(), ...nothingYet };
      sent.push(taken);
      byId.set(taken.id, taken);
      parts.onTaken();
      return taken;
    },
    find: (id) => byId.get(id),
    track(message, response) {
      response.on('finish', () => {
        message.answered = true;
      });
      response.on('close', () => {
        message.cut = !message.answered;
        parts.look();
      });
    },
  };
}
