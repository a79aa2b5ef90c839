/** `coterie doctor` on the speech server: it is asked for a word. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeSpeech, startFakeSpeech } from '../fakes/speech.js';
import { makeHome, run } from '../harness/gateway.js';

const KEY = 'key-of-the-speech-server';

let speech: FakeSpeech;
beforeEach(async () => {
  speech = await startFakeSpeech();
});
afterEach(() => speech.close());

async function doctor(config: object): Promise<{ code: number | null; out: string }> {
  const home = await makeHome({ speech: config });
  const checked = run(home, ['doctor']);
  const code = await checked.exited;
  await home.remove();
  expect(checked.out() + checked.err()).not.toContain(KEY);
  return { code, out: checked.out() };
}

const configured = () => ({ base_url: speech.url, api_key: KEY, model: 'speaker', voice: 'nova' });

describe('doctor', () => {
  it('lets it speak, and says with which voice', async () => {
    const { code, out } = await doctor(configured());
    expect(out).toMatch(/^ok +speech: speaker speaks with the voice nova$/m);
    expect(code).toBe(0);
    expect(speech.asked).toHaveLength(1);
  });

  it('says why it does not speak', async () => {
    const { code, out } = await doctor({ ...configured(), voice: 'parrot' });
    expect(out).toMatch(
      /^failed +speech: The speech server at .*voice "parrot".*Input should be 'alloy', 'nova'/m,
    );
    expect(code).toBe(1);
  });

  it('says that nothing is configured', async () => {
    expect((await doctor({})).out).toMatch(/^ok +speech: not configured: replies are not spoken$/m);
  });
});
