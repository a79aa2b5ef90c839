/** Pictures are sent as base64 in pieces, each where it belongs. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ModelMessage } from '../../src/core/model.js';
import { piecesOf } from '../../src/models/attempt.js';
import { chatBody } from '../../src/models/request.js';

const bodyOf = (messages: ModelMessage[]) =>
  chatBody({
    api: 'chat',
    parameters: { model: 'm' },
    messages,
    tools: [],
    sendsImages: true,
    echoesTo: null,
    isToolsOrReasoning: false,
  });
const shown = (content: string, bytes: Uint8Array): ModelMessage => ({
  role: 'user',
  content,
  images: [{ mimeType: 'image/png', bytes: Buffer.from(bytes) }],
});

test('pictures stand where they belong, whatever is said around them', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ unit: 'binary', minLength: 1 }), fc.uint8Array({ maxLength: 40 }))),
      (told) => {
        const body = bodyOf(told.map(([words, bytes]) => shown(words, bytes)));
        const sent = JSON.parse(Buffer.concat([...piecesOf(body)]).toString());
        expect(sent.messages.map(({ content }: { content: object[] }) => content)).toEqual(
          told.map(([text, bytes]) => [
            { type: 'text', text },
            {
              type: 'image_url',
              image_url: {
                url: `data:image/png;base64,${Buffer.from(bytes).toString('base64')}`,
                detail: 'auto',
              },
            },
          ]),
        );
      },
    ),
  );
});

test('a large picture is written in pieces that join', () => {
  const bytes = Buffer.alloc(1_000_001, 'picture');
  const pieces = [...piecesOf(bodyOf([shown('Look', bytes)]))];
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(70_000);
  expect(Buffer.concat(pieces).toString()).toContain(`base64,${bytes.toString('base64')}"`);
});
