/** The context windows of models whose servers do not tell them, by the server's host and the model's name. Pure. */

const KNOWN: [host: string, name: RegExp, tokens: number][] = [
  ['api.openai.com', /^gpt-3\.5/, 16_385],
  ['api.openai.com', /^gpt-4(-0613|-0314)?$/, 8_192],
  [
    'api.openai.com',
    /^(gpt-4-turbo|gpt-4-1106|gpt-4-0125|gpt-4o|gpt-5(\.\d)?-chat|o1-mini|o1-preview)/,
    128_000,
  ],
  ['api.openai.com', /^(o1|o3|o4)/, 200_000],
  ['api.openai.com', /^gpt-4\.1/, 1_047_576],
  ['api.openai.com', /^gpt-5/, 400_000],
  ['api.deepseek.com', /^deepseek-/, 131_072],
  ['api.x.ai', /^grok-(2|3)/, 131_072],
  ['api.x.ai', /^grok-(4|code)/, 256_000],
  ['generativelanguage.googleapis.com', /^(models\/)?gemini-/, 1_048_576],
];

/** null where nothing is known. */
export function knownWindow(host: string, model: string): number | null {
  return KNOWN.find(([where, name]) => where === host && name.test(model))?.[2] ?? null;
}
