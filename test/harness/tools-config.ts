/** The default `tools` configuration without reactions, which most tests do not want. */
import type { Config } from '../../src/config.js';
import { TOOL_GROUPS } from '../../src/core/tool.js';

export const TOOLS_CONFIG: Config['tools'] = {
  allow: [...TOOL_GROUPS],
  chats: {},
  channels: {},
  maxOffered: 128,
  reactions: 'off',
  shell: { sandbox: 'bubblewrap', network: false, env: [], timeoutSeconds: 60, memoryMb: 512 },
  web: { timeoutSeconds: 20, maxBytes: 2_000_000, allowHosts: [] },
};
