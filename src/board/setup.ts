/** The page's setup: state, servers nearby, tries, and what is saved in config.yaml. */
import { z } from '@hono/zod-openapi';
import type { Saved, Setup } from '../core/setup.js';
import { type BoardApi, reply, replyWith } from './api.js';
import { bodyIn, refused } from './own.js';

const line = (most: number) => z.string().max(most);
const ModelWish = z.strictObject({
  address: line(2_000).min(1),
  key: line(4_000).min(1).nullable(),
  model: line(500).min(1),
});
const Token = z.strictObject({ platform: z.enum(['telegram', 'discord']), token: line(1_000).min(1) });
const Phone = z.strictObject({ phone: line(40) });
const Leaving = z.strictObject({ how: z.enum(['finished', 'skipped']) });
const Nothing = z.strictObject({});

/** The code of the setup is loaded with the first request for it. */
export function addSetup(api: BoardApi, open: () => Promise<Setup>): void {
  const at = '/api/board/setup';
  api.get(at, async () => reply(200, await (await open()).state()));
  api.get(`${at}/servers`, async () => reply(200, { servers: await (await open()).servers() }));
  api.post(`${at}/model/try`, async (context) => {
    const wish = await bodyIn(context, ModelWish);
    return reply(200, await (await open()).tryModel(wish));
  });
  api.put(`${at}/model`, async (context) => {
    const wish = await bodyIn(context, ModelWish);
    return saved(await (await open()).saveModel(wish));
  });
  api.post(`${at}/token/check`, async (context) => {
    const { platform, token } = await bodyIn(context, Token);
    return reply(200, await (await open()).checkToken(platform, token));
  });
  api.put(`${at}/token`, async (context) => {
    const { platform, token } = await bodyIn(context, Token);
    return saved(await (await open()).saveToken(platform, token));
  });
  api.post(`${at}/whatsapp`, async (context) => {
    await bodyIn(context, Nothing);
    return saved(await (await open()).connectWhatsApp());
  });
  api.get(`${at}/whatsapp/code.svg`, async () => {
    const picture = await (await open()).linkPicture();
    if (picture === null) throw refused(404, { error: 'No code is shown.' });
    return replyWith(200, picture, { 'Content-Type': 'image/svg+xml' });
  });
  api.post(`${at}/whatsapp/code`, async (context) => {
    const { phone } = await bodyIn(context, Phone);
    return reply(200, await (await open()).linkCode(phone));
  });
  api.post(`${at}/leave`, async (context) => {
    const { how } = await bodyIn(context, Leaving);
    await (await open()).leave(how);
    return reply(200, {});
  });
  api.post(`${at}/again`, async (context) => {
    await bodyIn(context, Nothing);
    (await open()).takeIn();
    return reply(202, {});
  });
}

function saved(outcome: Saved): never {
  if (!outcome.saved) throw refused(422, { error: outcome.says });
  const { file, isSame, warnings } = outcome;
  return reply(200, { file, isSame, warnings });
}
