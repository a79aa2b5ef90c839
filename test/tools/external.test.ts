/** What leaves the machine, for an agent: it may do that only on an owner's word. */
import { expect, it } from 'vitest';
import { type SendMessageServices, sendMessage } from '../../src/tools/sending.js';
import { type ShellParts, shell } from '../../src/tools/shell/shell.js';
import { type WebFetchParts, webFetch } from '../../src/tools/web/web-fetch.js';
import { TOOLS_CONFIG } from '../harness/tools-config.js';

it('is a message, and a command with network; not one without, nor a page that is fetched', () => {
  // None of them is called.
  const command = (network: boolean) =>
    shell({ settings: { ...TOOLS_CONFIG.shell, network } } as unknown as ShellParts);
  expect(sendMessage({ folders: {} } as unknown as SendMessageServices).isExternal).toBe(true);
  expect(command(true)).toMatchObject({ isExternal: true, risk: 'high' });
  expect(command(false).isExternal).toBeUndefined();
  expect(webFetch({ settings: TOOLS_CONFIG.web } as unknown as WebFetchParts).isExternal).toBeUndefined();
});
