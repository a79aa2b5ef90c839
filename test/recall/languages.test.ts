/** A small set of our own in eight languages, all in one chat: no language is lost, whatever is done to the ranking. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { begin, compileWorker, ROOM } from './support.js';

const SAID: [language: string, text: string, questions: string[]][] = [
  [
    'en',
    'We planted three apple trees behind the barn',
    ['where did we plant apple trees', 'apples behind the barn', 'planting trees'],
  ],
  [
    'en',
    'The dentist moved my appointment to Thursday',
    ["when is the dentist's appointment", 'dentist appointments'],
  ],
  ['en', 'Grandma taught me to knit mittens last winter', ['who taught knitting', 'grandmother and mittens']],
  ['de', 'Am Wochenende haben wir die Küche gelb gestrichen', ['Farbe der Küche gestrichen', 'kuche gelb']],
  ['de', 'Der Zug nach Hamburg hatte zwei Stunden Verspätung', ['Verspätung Zug Hamburg', 'zug verspatung']],
  [
    'fr',
    'Ma sœur a acheté une vieille maison près de la rivière',
    ['maison près de la rivière', 'acheter maison riviere'],
  ],
  [
    'es',
    'El perro del vecino se escapó otra vez por el jardín',
    ['perro del vecino', 'se escapo el perro por el jardin'],
  ],
  ['zh', '我昨天在公园里看见了一只白猫', ['白猫', '公园看见什么', '在公园里看见猫']],
  ['zh', '妈妈做的红烧肉最好吃', ['红烧肉', '妈妈做什么好吃']],
  ['zh', '下个月我们要搬到上海去住', ['上海', '搬家到上海']],
  ['ja', '来週の水曜日に歯医者の予約があります', ['歯医者', '歯医者の予約はいつ', '予約']],
  ['ja', '京都で買った茶碗を割ってしまった', ['京都の茶碗', '茶碗', 'お茶碗を割った']],
  ['ja', 'カレーに隠し味でチョコレートを入れる', ['チョコレート', 'カレーの隠し味']],
  ['ko', '어제 도서관에서 잃어버린 지갑을 찾았어요', ['도서관 지갑', '지갑을 어디서 찾았어', '지갑']],
  ['ko', '다음 달에 부산으로 여행을 갑니다', ['부산 여행', '부산에 언제 가']],
  ['th', 'เมื่อวานฉันกินต้มยำกุ้งที่ร้านใหม่', ['ต้มยำกุ้ง', 'ร้านใหม่', 'กินต้มยำที่ไหน']],
  ['th', 'แมวของฉันชอบนอนบนหลังคา', ['แมวนอนที่ไหน', 'หลังคา', 'แมว']],
  ['ar', 'اشتريت كتابا عن النجوم من المكتبة القديمة', ['كتاب عن النجوم', 'المكتبة', 'مكتبة قديمة']],
  ['ar', 'سافرنا إلى البحر في الصيف مع الأصدقاء', ['السفر إلى البحر', 'البحر في الصيف', 'اصدقاء الصيف']],
  [
    'ru',
    'Вчера мы нашли старую карту на чердаке',
    ['старая карта', 'карты на чердаке', 'что нашли на чердаке'],
  ],
  ['ru', 'Бабушка печёт пироги с вишней по воскресеньям', ['пирог с вишней', 'бабушкины пироги', 'вишня']],
  ['uk', 'Ми купили новий велосипед для доньки', ['велосипеда', 'новий велосипед']],
];
let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

describe('every language', () => {
  it('is found in, by the first hit nearly always, by the first three always', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    for (const [n, [, text]] of SAID.entries())
      feed.say({ room: ROOM, heardBy: ['luna'], text, at: Date.UTC(2026, 0, 1 + n) });
    await indexed();
    const missed: string[] = [];
    let first = 0;
    let all = 0;
    for (const [language, text, questions] of SAID) {
      for (const question of questions) {
        const found = await find(question, { limit: 3 });
        all++;
        if (found[0] === text) first++;
        if (!found.includes(text)) missed.push(`${language}: ${question}`);
      }
    }
    expect(missed).toEqual([]);
    expect(first / all).toBeGreaterThanOrEqual(0.95);
  });
});
