/** What an operator reads about a model server holds none of its secrets, and everything else. */
import { expect, it } from 'vitest';
import { redactorFor } from '../../src/models/redact.js';

const server = { baseUrl: 'https://models.example/v1', apiKey: null };

it('cuts out keys, secret headers and fields, and what the address holds', () => {
  const redact = redactorFor({
    baseUrl: 'https://anna:pass%20word@models.example/v1?code=in-the-query',
    apiKey: 'the-api-key',
    headers: { 'X-Api-Key': 'Basic in-a-header', 'X-Title': 'a title' },
    extra: { deep: { secret: 'in-the-body' }, temperature: 1 },
  });
  const told = 'the-api-key in-a-header in-the-body pass word pass%20word in-the-query a title';
  expect(redact(told)).toBe('[key] [key] [key] [key] [key] [key] a title');
});

it('cuts nothing up for the sake of what is too short to be a secret', () => {
  const redact = redactorFor({ baseUrl: 'https://models.example/v1?v=1&x=&api=404', apiKey: 'x' });
  expect(redact('x answers with 404, not 1')).toBe('x answers with 404, not 1');
});

it('cuts out the longer of two secrets whole, and what stands there instead is none', () => {
  const redact = redactorFor({
    ...server,
    apiKey: 'hunter2-secret',
    extra: { key: 'hunter2-secret-long' },
  });
  expect(redact('hunter2-secret-long hunter2-secret')).toBe('[key] [key]');
});

it('takes a password that nobody wrote for an address', () => {
  const redact = redactorFor({ ...server, baseUrl: 'https://anna:100%sure@models.example/v1' });
  expect(redact('refused: 100%sure')).toBe('refused: [key]');
});
