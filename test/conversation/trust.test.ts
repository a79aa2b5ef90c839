/** Which hosts words name, as step 4 of the route and tasks read them. */
import { expect, it } from 'vitest';
import { hostsIn } from '../../src/conversation/context/trust.js';

it('finds the hosts that a text names, each as a whole', () => {
  const text = 'https://example.com/a-b, sub.example.org:8080, (münchen.de) a--b.c.d. localhost [::1] word';
  expect(hostsIn(text)).toEqual([
    'example.com',
    'sub.example.org',
    'xn--mnchen-3ya.de',
    'a--b.c.d',
    'localhost',
    '[::1]',
  ]);
});

it('reads a very long word as quickly as it is long', () => {
  const word = 'x'.repeat(200_000);
  expect(hostsIn(`${word} example.com ${word}`)).toEqual(['example.com']);
}, 5_000);
