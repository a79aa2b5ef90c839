/** Which messages ask for something that may be known, in several languages. */
import { describe, expect, it } from 'vitest';
import { formOf, goesOn } from '../../src/conversation/context/recollection.js';

describe('a message', () => {
  it.each([
    'What is my cat called?',
    'remind me of the notary please',
    'do you know where i left my glasses',
    'what was the restaurant called where we celebrated',
    'Wann ist mein Termin beim Friseur?',
    'wie hieß nochmal unser Lehrer',
    '¿Qué instrumento toco?',
    'cuándo es mi cita con el notario',
    "c'est quand mon rendez-vous chez le notaire",
    'Qui garde le chat ?',
    'Во сколько завтра мой поезд?',
    'напомни про врача',
    '私の血液型は?',
    '傘をどこに忘れた?',
    '我妹妹住在哪里?',
    '我的钥匙在哪',
  ])('%j asks for what is known', (text) => {
    expect(formOf(text)).toBe('question');
  });

  it.each([
    'sweet dreams',
    'shall we go out for dinner?',
    'what a lovely morning',
    "isn't it lovely outside?",
    'can you write me a poem?',
    "I'm hungry, let's order pizza",
    'what time is it?',
    'kochen wir Nudeln?',
    'was für ein schöner Tag',
    'was machst du gerade?',
    '¿salimos a pasear?',
    'qué bonito día',
    'on va se promener ?',
    'quelle belle journée',
    'пойдём гулять?',
    'что делаешь?',
    '散歩に行こうか?',
    '何してるの?',
    '要不要吃披萨?',
    '晚安',
  ])('%j does not plainly', (text) => {
    expect(formOf(text)).not.toBe('question');
  });

  it.each([
    'What do you know of the red bicycle?',
    'On what day is the report due?',
    'how do I drink my coffee',
    'Que veut faire Camille plus tard ?',
  ])('%j asks, whatever its words are in another language', (text) => {
    expect(formOf(text)).toBe('question');
  });

  it.each(['the code of the bike lock?', 'did Clara call?'])('%j may ask', (text) => {
    expect(formOf(text)).toBe('perhaps');
  });

  it.each([
    'good night :)',
    'thanks!',
    'haha',
    'how are you today?',
    'wie geht es dir?',
    '晚安',
    'спокойной ночи',
  ])('%j is small talk', (text) => {
    expect(formOf(text)).toBe('small talk');
  });

  it.each([
    'good morning, the dentist called',
    "I'm visiting Clara tomorrow",
    'shall we cook spaghetti',
    'danke, und die Miete?',
  ])('%j is searched: it is about something', (text) => {
    expect(formOf(text)).not.toBe('small talk');
  });

  it.each([
    'and where does she live?',
    'und wie alt ist er?',
    '¿y dónde vive?',
    'et elle habite où ?',
    'а сколько ему лет?',
    '他多大了?',
  ])('%j goes on from what was said before', (text) => {
    expect([formOf(text) !== 'remark', goesOn(text)]).toEqual([true, true]);
  });

  it('of many words that names its subject does not go on', () => {
    expect(goesOn('Which instrument did Clara play in the orchestra of the town?')).toBe(false);
  });
});
