/** Runs a command as the gateway does, in a process of its own, to be killed: `killed-gateway SANDBOX HOME`. */
import { join } from 'node:path';
import { systemClock } from '../../../src/core/clock.js';
import { shell } from '../../../src/tools/shell/shell.js';
import { foldersIn } from '../../harness/folders.js';

const [sandbox, home = ''] = process.argv.slice(2);
const none = () => {};
const tool = shell({
  folders: foldersIn(join(home, 'data')),
  clock: systemClock,
  newId: () => 'killed',
  settings: {
    ...{ sandbox: sandbox === 'none' ? 'none' : 'bubblewrap', network: false, env: [] },
    ...{ timeoutSeconds: 60, memoryMb: 512 },
  },
  environment: { PATH: process.env.PATH },
});
const command = 'trap "" TERM HUP; (while :; do echo x >> ticks; sleep 0.02; done) & wait';
await tool.execute(
  { command },
  {
    authorisation: {
      ...{
        chatId: 'telegram_1',
        personaId: 'luna',
        senderId: 'telegram_9',
        channel: 'telegram',
        controlChats: [],
      },
      asker: { senders: async () => [], isOwner: async () => true, mayChange: async () => 'yes' },
    },
    ...{ room: 'telegram_1', turnId: 't', callId: 'c', now: 0, timezone: 'UTC', seen: new Map() },
    signal: new AbortController().signal,
    log: { debug: none, info: none, warn: none, error: none },
    cause: { kind: 'turn', personaId: 'luna', turnId: 't' },
  },
);
