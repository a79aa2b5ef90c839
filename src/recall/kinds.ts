/**
 * What a question calls by its kind was told by its name: "which sports" are football and chess, "which countries" France
 * and Japan. For English; everyday kinds, with their most common members. Pure.
 */
import { stem } from './english.js';

/** A row's words, and what they stand for. */
const ROWS = `
  sport: football soccer basketball tennis volleyball baseball softball hockey golf rugby cricket swim run jog cycle bike
    ski snowboard surf climb hike box karate judo yoga gym badminton squash marathon skate gymnastics wrestle archery row
    sail fencing dive kayak bowling workout fitness
  food dish meal cuisine snack eat: pizza pasta spaghetti lasagna salad soup stew bread toast cheese rice chicken beef pork
    lamb turkey bacon ham fish salmon tuna shrimp steak sushi ramen burger sandwich taco burrito noodle dumpling curry
    kebab egg omelette pancake waffle cake pie cookie dessert chocolate potato fries bean tofu vegetable fruit sauce
    breakfast lunch dinner brunch cook bake grill recipe
  drink beverage: coffee tea beer wine juice water milk cocktail whisky vodka gin rum lemonade soda cola smoothie champagne
    espresso latte
  fruit: apple banana orange lemon lime grape strawberry blueberry raspberry cherry peach pear plum mango pineapple melon
    kiwi avocado coconut
  vegetable: carrot potato tomato onion garlic pepper cucumber broccoli cabbage lettuce spinach pea bean corn mushroom
    zucchini pumpkin eggplant
  animal pet: dog cat horse pony bird parrot rabbit bunny hamster fish turtle tortoise snake lizard cow pig sheep goat duck
    goose chicken mouse rat bear wolf fox deer lion tiger elephant monkey dolphin whale shark bee butterfly
  flower plant: rose tulip lily orchid sunflower daisy tree herb basil cactus
  country abroad: france germany italy spain portugal england britain uk ireland scotland wales switzerland austria belgium
    netherlands denmark sweden norway finland iceland poland czech hungary greece turkey russia ukraine croatia romania
    bulgaria serbia albania egypt morocco tunisia kenya tanzania nigeria ghana ethiopia israel jordan lebanon iran iraq
    india pakistan bangladesh nepal china japan korea taiwan vietnam thailand cambodia indonesia malaysia singapore
    philippines australia zealand canada mexico cuba jamaica bahamas brazil argentina chile peru colombia usa america
  city town: london paris berlin munich hamburg vienna zurich rome milan venice florence naples madrid barcelona lisbon
    porto amsterdam brussels copenhagen stockholm oslo helsinki prague budapest warsaw athens istanbul moscow dublin
    edinburgh cairo dubai mumbai delhi beijing shanghai tokyo kyoto osaka seoul bangkok sydney melbourne toronto vancouver
    montreal york boston chicago miami houston dallas austin seattle denver vegas francisco angeles philadelphia
    washington
  place location destination: city country beach mountain park museum island lake forest village restaurant cafe
  instrument: piano guitar violin drum flute cello trumpet saxophone clarinet harp ukulele bass keyboard organ harmonica
    viola
  music genre band: jazz rock pop classical rap metal blues folk reggae techno punk concert song album singer
  movie: comedy thriller horror drama documentary cinema
  game: chess poker monopoly card puzzle playstation xbox nintendo console
  hobby interest pastime: paint draw read write photograph hike cook bake garden knit sew dance sing fish travel chess
    puzzle game music guitar piano camp pottery collect craft ski swim run yoga cycle
  activity: hike swim run walk cycle ski dance paint camp yoga climb game cook bowling kayak shop museum concert picnic
  family relative: mother father sister brother son daughter grandmother grandfather uncle aunt cousin niece nephew wife
    husband parent child twin
  sibling: brother sister twin
  parent: mother father
  child: son daughter baby
  partner spouse: wife husband girlfriend boyfriend fiance
  illness ailment disease sickness: flu cold fever headache cough allergy asthma diabetes cancer infection pain migraine
    covid sick virus injury surgery hospital
  health healthy: exercise gym diet vitamin sleep doctor
  profession: teacher doctor nurse engineer lawyer dentist chef driver pilot programmer developer designer artist writer
    journalist manager accountant farmer police firefighter scientist waiter
  subject: math physics chemistry biology history geography economics literature philosophy psychology
  language: english german french spanish italian portuguese russian chinese japanese korean arabic dutch hindi turkish
    latin
  color colour: red blue green yellow orange purple pink black white brown gray grey blond
  clothes clothing outfit: shirt dress skirt pants jeans jacket coat sweater hoodie shoe boot sneaker hat scarf suit sock
  appearance: hair skin makeup tall eye beard tattoo
  vehicle transport: car bike motorcycle train bus plane boat truck van tram subway scooter
  season: spring summer autumn winter
  relationship romantic: boyfriend girlfriend crush date love marry single breakup wife husband engage
  dream goal ambition: want become hope wish someday
  problem difficulty challenge struggle trouble: hard difficult stress worry struggle problem issue
  feeling emotion mood: happy sad angry excited nervous stressed tired anxious proud scared lonely upset
  money financial: pay cost rent salary save afford expensive cheap bill loan debt
  device app: phone laptop computer tablet instagram tiktok youtube
  tv: netflix series episode
  art artistic: paint draw sculpture museum gallery sketch
  culture cultural: museum art theater concert gallery history festival exhibition opera
  outdoors nature: hike camp park mountain beach lake forest trail
  water: swim beach surf sail boat kayak lake sea ocean pool dive
  religion religious: church god pray christian muslim jewish bible
  skill talent: play dance sing draw paint cook
  exercise physical workout: gym run yoga swim bike hike walk pilates
  award achievement accomplish: win prize medal
  housework chore: clean wash laundry vacuum tidy
  recipe ingredient: tablespoon salt pepper garlic onion butter flour oven
  dessert: cake pie cookie chocolate tiramisu brownie cheesecake
  education degree: university college major bachelor master phd
  personality trait: funny shy introvert honest lazy outgoing
  landmark sight attraction: museum tower bridge statue palace castle
  vacation: flight hotel beach airport resort
  accident injury: broke ankle leg arm hospital crash
  celebrate celebration: birthday christmas party easter anniversary thanksgiving eve
  favorite favourite prefer: love enjoy prefer fan favorite adore
  hate dislike: hate dislike awful terrible
  fear afraid: scare fear afraid phobia nervous
  visit travel: go trip fly visit travel stay vacation
  live: home apartment house move
  study learn: university college school degree major class course student exam lesson
  relax stress: relax calm rest unwind stress massage yoga meditate`;

const KINDS = new Map<string, string[]>();
for (const [, kinds = '', members = ''] of ROWS.matchAll(/(?<![a-z ])([a-z ]+):([^:]*)(?=\n {2}\S|$)/g)) {
  for (const kind of stems(kinds)) {
    const known = KINDS.get(kind) ?? [];
    KINDS.set(
      kind,
      [...new Set([...known, ...stems(members)])].filter((member) => member !== kind),
    );
  }
}

function stems(words: string): string[] {
  return words.trim().split(/\s+/).map(stem);
}

/** The terms that a term may stand for. */
export function membersOf(term: string): string[] {
  return KINDS.get(term) ?? [];
}
