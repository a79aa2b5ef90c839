/** Pictures in requests: as the server wants them, not at all where it takes none, and told in words then. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelImage, ModelRequest } from '../../src/core/model.js';
import { refusedPictures } from '../../src/models/refusals.js';
import { chatRequest } from '../../src/models/request.js';
import type { Quirk } from '../../src/models/server-ways.js';
import { answered, type Bench, fault, openBench, written } from './helpers.js';

const PNG: ModelImage = { mimeType: 'image/png', bytes: Buffer.from([1, 2, 250]) };
const JPEG: ModelImage = { mimeType: 'image/jpeg', bytes: Buffer.from('jpeg') };
const shown: ModelRequest = {
  messages: [
    { role: 'user', content: 'Look at these', images: [PNG, JPEG] },
    { role: 'assistant', content: 'Nice.', calls: [] },
    { role: 'user', content: 'And this?', images: [JPEG] },
  ],
  tools: [],
};
const sent = (refused: Quirk[] = [], request = shown) =>
  chatRequest(request, { server: 'here', model: 'small' }, 500, new Set(refused));
const body = (refused: Quirk[] = [], request = shown) => written(sent(refused, request));

describe('in a request', () => {
  test('are parts beside the words, as data', () => {
    expect(body().messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look at these' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AQL6', detail: 'auto' } },
          { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,anBlZw==', detail: 'auto' } },
        ],
      },
      { role: 'assistant', content: 'Nice.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'And this?' },
          { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,anBlZw==', detail: 'auto' } },
        ],
      },
    ]);
  });

  test('become a word about them, where they are refused', () => {
    expect(body(['images']).messages).toEqual([
      { role: 'user', content: 'Look at these\n[2 pictures could not be shown to this model]' },
      { role: 'assistant', content: 'Nice.' },
      { role: 'user', content: 'And this?\n[1 picture could not be shown to this model]' },
    ]);
  });

  test('need no words', () => {
    const bare: ModelRequest = { messages: [{ role: 'user', content: '', images: [PNG] }], tools: [] };
    expect(body([], bare).messages).toMatchObject([{ content: [{ type: 'image_url' }] }]);
    expect(body(['images'], bare).messages).toEqual([
      { role: 'user', content: '[1 picture could not be shown to this model]' },
    ]);
  });

  test('stay with their message where tools are told in plain words', () => {
    const request: ModelRequest = {
      messages: [
        { role: 'user', content: 'one', images: [PNG] },
        { role: 'user', content: 'two', images: [JPEG] },
        { role: 'tool', callId: 'a', content: 'three' },
      ],
      tools: [],
    };
    const [message] = body(['tools'], request).messages;
    expect(message).toMatchObject({
      content: [{ type: 'text' }, { type: 'image_url' }, { type: 'image_url' }],
    });
    expect(request.messages[0]).toEqual({ role: 'user', content: 'one', images: [PNG] });
  });
});

/** The words are those of real servers, shortened. */
describe('what a refusal says of them', () => {
  const refused = (status: number, words: string, request = sent()) =>
    refusedPictures(request, { kind: 'answered', status, words });

  test.each([
    [400, 'Invalid content type. image_url is only supported by certain models.'],
    [404, 'No endpoints found that support image input'],
    [400, 'llama-3-8b is not a multimodal model'],
    [400, 'At most 0 image(s) may be provided in one request.'],
    [500, 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'],
    [400, 'Model does not support images. Please use a model that does.'],
    [400, 'Image input is not enabled for this model'],
    [422, 'Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`'],
    [400, "'messages.0.content' : value must be a string"],
    [422, 'messages.0.content: Input should be a valid string'],
    [400, 'This model does not support vision.'],
    [415, 'Content type image_url is not supported'],
    [500, 'this model is missing data required for image input'],
  ])('%s %s: it takes none', (status, words) => {
    expect(refused(status, words)).toBe('none taken');
  });

  test.each([
    [400, "You uploaded an unsupported image. Please make sure your image is one of ['png', 'jpeg']."],
    [400, 'Could not process image'],
    [400, 'messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes'],
    [400, 'At most 4 image(s) may be provided in one request.'],
    [400, 'cannot identify image file <_io.BytesIO object at 0x7f>'],
    [400, 'Does not support image format image/webp'],
    [400, 'This model does not support images larger than 5 MB'],
    [400, 'We do not allow images of this kind'],
    [400, 'Images are not supported in system messages'],
    [400, 'The model supports image inputs of up to 20 MB'],
    [413, 'Request Entity Too Large'],
    [422, 'invalid base64 data'],
  ])('%s %s: it does not take these', (status, words) => {
    expect(refused(status, words)).toBe('these not taken');
  });

  test.each([
    [400, 'temperature: must be at most 1'],
    [401, 'image_url is only supported by certain models'],
    [500, 'could not process image'],
    [429, 'too many images'],
    [400, "This model's maximum context length is 8192 tokens"],
  ])('%s %s: nothing', (status, words) => {
    expect(refused(status, words)).toBe(null);
  });

  test('only what was sent can be refused', () => {
    expect(refused(400, 'Model does not support images.', sent(['images']))).toBe(null);
  });
});

describe('a server', () => {
  let bench: Bench | undefined;
  afterEach(() => bench?.fake.close());

  /** Of each request: how many pictures it showed. */
  const pictures = ({ fake }: Bench) =>
    fake.requests.map(({ body: { messages } }) => messages.flatMap((message) => message.images ?? []).length);

  test('that takes them sees them, to the byte', async () => {
    bench = await openBench('I see');
    expect((await answered(bench.client, shown)).text).toBe('I see');
    expect(bench.fake.requests[0]?.body.messages[0]?.images).toEqual([PNG, JPEG]);
  });

  test('that takes none is asked again without, and never with them again, also after a restart', async () => {
    bench = await openBench('I hear');
    bench.fake.settings.images = 'refused';
    expect((await answered(bench.client, shown)).text).toBe('I hear');
    await answered(bench.client, shown);
    await answered(bench.another(), shown);
    expect(pictures(bench)).toEqual([3, 0, 0, 0]);
    expect(bench.fake.requests.at(-1)?.body.messages.at(-1)?.content).toContain('could not be shown');
    expect(bench.log.lines.join()).toContain('model refused pictures');
  });

  test('is remembered for each model apart', async () => {
    bench = await openBench('I hear');
    bench.fake.settings.images = 'refused';
    await answered(bench.client, shown);
    bench.fake.settings.images = 'taken';
    await answered(bench.client, { ...shown, model: 'with-eyes' });
    expect(pictures(bench)).toEqual([3, 0, 3]);
  });

  test('that does not take these pictures gets this request without, and the next ones', async () => {
    bench = await openBench((chat) =>
      chat.messages.some(({ images }) => images)
        ? { status: 400, body: { error: { message: 'Could not process image' } } }
        : 'fine',
    );
    await answered(bench.client, shown);
    await answered(bench.client, shown);
    expect(pictures(bench)).toEqual([3, 0, 3, 0]);
    expect(bench.learnt.read()).toBe(null);
  });

  test('with "no" is never shown any', async () => {
    bench = await openBench('fine', { images: 'no' });
    await answered(bench.client, shown);
    expect(pictures(bench)).toEqual([0]);
  });

  test('with "yes" is always asked, whatever was remembered, and yet answers', async () => {
    bench = await openBench('fine', { images: 'yes' });
    bench.fake.settings.images = 'refused';
    await answered(bench.client, shown);
    await answered(bench.client, shown);
    expect(pictures(bench)).toEqual([3, 0, 3, 0]);
    expect(bench.learnt.read()).toBe(null);
  });

  test('that refuses for another reason has refused', async () => {
    bench = await openBench({ status: 400, body: { error: { message: 'No such model' } } });
    expect((await fault(bench.client, shown)).code).toBe('model_refused');
    expect(bench.fake.requests).toHaveLength(1);
  });
});
