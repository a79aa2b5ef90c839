/** Joins the parts that the page of the board reads and changes. Loaded with the first request to the listener. */
import { randomUUID } from 'node:crypto';
import type { ChatParts } from './board/chat.js';
import type { PageParts } from './board/page.js';
import { createConfigWriter } from './config-write.js';
import { argumentsShown } from './conversation/approvals.js';
import { COMMANDS } from './conversation/commands/list.js';
import type { Conversation } from './conversation/conversation.js';
import { BOARD_OWNER, type Desk } from './core/board.js';
import { once } from './core/concurrency.js';
import { printable } from './core/cut.js';
import { createMediaFiles } from './media/files.js';
import { operationsPartsOf } from './page-operations.js';
import type { Parts } from './parts.js';
import { foldersOf } from './paths.js';
import { openTurn } from './replay.js';
import { createSetup, isSetupDue } from './setup.js';

export function pagePartsOf(parts: Parts, desk: Desk, conversation: Conversation): PageParts {
  const { facts, config, store, memory, artifacts, personas, audit, zone, clock } = parts;
  return {
    version: facts.version,
    watch: store.watch,
    setup: setupOf(parts),
    chat: chatPartsOf(parts, desk),
    memory: { files: memory, history: store, personas, audit, today: () => zone.date(clock.now()) },
    operations: operationsPartsOf(parts, conversation),
    work: { tasks: store, artifacts, chats: store, personas, audit },
    conversations: {
      lists: store,
      personas,
      turns: { openTurn: (id) => openTurn(store, config, id) },
    },
  };
}

function chatPartsOf({ config, store, personas, audit, clock }: Parts, desk: Desk): ChatParts {
  const media = createMediaFiles({ folder: foldersOf(config).media, newId: randomUUID });
  return {
    ...{ desk, feed: store, personas, audit },
    uploadBytes: config.media.maxBytes,
    now: () => clock.now(),
    newId: randomUUID,
    chat: store.chat,
    commands: COMMANDS.map(({ name, aliases, description, verbs }) => {
      const shown = { name, aliases, description };
      return verbs ? { ...shown, verbs } : shown;
    }),
    mediaPath: media.path,
    plainArguments,
  };
}

/** A log cuts long ones, which are no JSON then. */
function plainArguments(json: string): string {
  try {
    return argumentsShown(json).whole;
  } catch {
    return printable(json);
  }
}

function setupOf(parts: Parts): PageParts['setup'] {
  const { config, options, store } = parts;
  return {
    isDue: async () => config.model.server === null && isSetupDue(config, store),
    open: once(async () => {
      const who = { who: BOARD_OWNER, where: null, word: BOARD_OWNER };
      const writer = createConfigWriter(options.from, parts.audit);
      return createSetup({ ...parts, writer, takeIn: options.takeIn, who });
    }),
  };
}
