/** Records and exports that do nothing. */
import type { ChatExports } from '../../src/core/chat-record.js';
import type { TurnRecords } from '../../src/core/journal.js';

export const NO_RECORDS: TurnRecords = {
  open: () => ({ saw: () => {}, watch: (model) => model, end: () => {} }),
  forget: async () => {},
};

export const NO_EXPORTS: ChatExports = {
  make: async () => null,
  write: async () => {
    throw new Error('no file is written here');
  },
  forget: async () => {},
};
