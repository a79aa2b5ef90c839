/** What leaves the machine, for an agent: it may do that only on an owner's word. */
import { expect, it } from 'vitest';
import { type SendMessageParts, sendMessage } from '../../src/tools/send-message.js';
import { type ShellParts, shell } from '../../src/tools/shell/shell.js';
import { type WebFetchParts, webFetch } from '../../src/tools/web/web-fetch.js';
import { TOOLS_CONFIG } from '../harness/tools-config.js';

const NOTHING = {};

it('is a message, and a command with network; not one without, nor a page that is fetched', () => {
  const command = (network: boolean) =>
    shell({ ...NOTHING, settings: { ...TOOLS_CONFIG.shell, network } } as ShellParts);
  expect(sendMessage(NOTHING as SendMessageParts).isExternal).toBe(true);
  expect(command(true)).toMatchObject({ isExternal: true, risk: 'high' });
  expect(command(false).isExternal).toBeUndefined();
  expect(webFetch({ ...NOTHING, settings: TOOLS_CONFIG.web } as WebFetchParts).isExternal).toBeUndefined();
});
