"""Closed-class words of seven languages: articles, pronouns, prepositions, conjunctions, auxiliaries, small adverbs.

They are what a sentence cannot do without, and they tell languages apart where names, terms and words that two
languages share mislead an identifier: "Was will man hier?" is English by 0.9 to fastText, and "man" and "hier" say that
it is not. Forms that are a word of several languages (was, will, in, so) stand in the list of each, and speak for none
of them against another. Lower case throughout.
"""

from __future__ import annotations

from functools import cache

_WORDS = {
    "de": """
        per pro plus der die das den dem des dessen derer deren denen ein eine einen einem einer eines kein
        keine keinen keinem keiner keines ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen
        ihrer ihre ihren ihrem ihres mein meine meinen meinem meiner meines dein deine deinen deinem deiner sein
        seine seinen seinem seiner seines unser unsere unseren unserem unserer unseres euer eure euren eurem
        eurer sich man selbst selber einander dies diese dieser dieses diesen diesem jene jener jenes jenen
        jenem derselbe dieselbe dasselbe denselben derjenige diejenige dasjenige diejenigen denjenigen solch
        solche solcher solches solchen welch welche welcher welches welchen welchem wer wen wem wessen was wo
        woher wohin wann wie warum weshalb wieso wozu wofür womit wodurch woran worauf woraus worin worüber
        wovon wobei wohingegen jemand niemand jemanden niemanden jeder jede jedes jeden jedem alle alles aller
        allen allem beide beiden beider beides einige einiger einigen manche mancher manches manchen mehrere
        mehrerer mehreren viel viele vieler vielen vieles wenig wenige weniger wenigen etwas nichts mehr meist
        meisten anderer andere anderes anderen anderem sämtliche in im ins an am ans auf aufs aus bei beim bis
        durch durchs für fürs gegen hinter mit nach neben ohne seit über übers um ums unter vom von vor vorm
        während wegen zu zum zur zwischen ab außer gegenüber trotz statt anstatt innerhalb außerhalb oberhalb
        unterhalb anhand aufgrund mithilfe mittels gemäß laut entlang bezüglich hinsichtlich und oder aber denn
        sondern doch jedoch sowie sowohl weder noch entweder dass daß ob weil da wenn falls sofern sobald
        solange sooft indem nachdem bevor ehe damit sodass obwohl obgleich als bin bist ist sind seid war warst
        waren wart wäre wären sei seien gewesen habe hast hat haben habt hatte hatten hätte hätten gehabt werde
        wirst wird werden werdet wurde wurden würde würden worden geworden kann kannst können könnt konnte
        konnten könnte könnten muss muß musst müssen müsst musste mußte mussten müsste müssten soll sollst
        sollen sollt sollte sollten will willst wollen wollt wollte wollten darf darfst dürfen durfte dürfte
        dürften mag mögen möchte möchten lässt läßt lassen gibt geht heißt macht gilt kommt bleibt steht liegt
        nicht nie niemals nirgends auch nur schon immer wieder sehr so ganz gar etwa fast kaum sogar eben halt
        ja nein mal einmal nun jetzt dann danach davor zuerst zunächst zuletzt schließlich endlich bald gleich
        sofort heute gestern morgen oft manchmal vielleicht wohl ungefähr genau eher lieber gern besser also
        daher deshalb darum deswegen somit folglich demnach außerdem zudem ferner dabei dadurch dafür dagegen
        dahin damals daneben daran darauf daraus darin darüber darunter davon dazu dazwischen hier hierbei
        hierfür hiermit hierzu hin her herum hinaus heraus hinein herein hinauf herunter dort drin oben unten
        vorn vorne hinten still unsern unsre euern andern andre links rechts überall irgendwo irgendwie
        irgendein irgendeine zwar allerdings hingegen trotzdem dennoch bereits bisher inzwischen meistens
        mindestens höchstens wenigstens insgesamt jeweils sonst ansonsten bzw usw zwei drei vier fünf sechs
        sieben acht neun zehn erste ersten zweite zweiten dritte dritten
    """,
    "en": """
        i a the an this that these those you he she it we they me him her us them my your his its our their mine
        yours hers ours theirs myself yourself himself herself itself ourselves themselves who whom whose which
        what where when why how whoever whatever whenever wherever whether somebody someone something anybody
        anyone anything nobody nothing everybody everyone everything each every either neither both all any some
        none few many much more most several such other another others same own of in to for with on at by from
        up about into over after beneath under above below between among through during before behind beyond
        within without against along across around toward towards upon off out down per via despite except since
        until till near like than as and or but nor so yet if then because although though unless while whereas
        once am is are was were be been being have has had having do does did doing done will would shall should
        can could may might must ought need let lets let's get gets got goes make makes made mean means wants
        isn't aren't wasn't weren't don't doesn't didn't won't wouldn't can't cannot couldn't shouldn't haven't
        hasn't it's that's there's here's what's i'm i'll i've i'd we'll we're we've we'd you're you'll they're
        he's she's not no never ever always often sometimes usually also too very just only even still already
        again now here there thus hence therefore however moreover furthermore instead otherwise maybe perhaps
        quite rather almost well yes okay first second next last finally actually really exactly simply indeed
        enough back away wait hmm see check know think say says said right wrong good falls inside outside far
        long sure works looks try die man war hat bin den bald fast mag end art gut rest
    """,
    "fr": """
        a à y le la les un une des du de au aux ce cet cette ces cela ça ceci celui celle ceux celles je tu il
        elle on nous vous ils elles me te se lui leur leurs moi toi soi eux mon ma mes ton ta tes son sa ses
        notre nos votre vos qui que qu quoi dont où quel quelle quels quelles lequel laquelle lesquels
        lesquelles quand comment pourquoi combien aucun aucune chaque plusieurs quelque quelques tout toute tous
        toutes autre autres même mêmes tel telle rien personne dans par pour en vers avec sans sous sur entre
        chez depuis pendant contre selon malgré après avant derrière devant jusque jusqu dès parmi hors outre et
        ou mais donc or ni car si lorsque puisque quoique afin comme tandis alors suis es est sommes êtes sont
        était étais étaient étions été être sera seront serait soit soient ai as avons avez ont avait avais
        avaient avoir aura auront aurait eu fait faire font faut peut peux peuvent pouvez pouvons pouvoir doit
        dois doivent devons devez va vais vont allons allez veut veux voulez ne pas plus moins très trop peu
        assez aussi encore déjà jamais toujours souvent parfois ici là bien mal ainsi ensuite puis enfin
        cependant pourtant toutefois peut-être non oui voici voilà c'est n'est qu'il qu'elle qu'on d'une d'un
        l'on s'il j'ai
    """,
    "es": """
        a y e o u el la los las lo un una unos unas al del de este esta estos estas esto ese esa esos esas eso
        aquel aquella aquellos aquellas yo tú él ella ello nosotros vosotros ellos ellas usted ustedes me te se
        nos os le les mi mis tu tus su sus mí ti sí nuestro nuestra nuestros nuestras vuestro que qué quien
        quién quienes cual cuál cuales cuyo cuya donde dónde cuando cuándo como cómo cuanto cuánto cuántos
        porque porqué algún alguna alguno algunos algunas algo alguien ningún ninguna ninguno nada nadie cada
        todo toda todos todas otro otra otros otras mismo misma mismos varios muchos muchas mucho mucha poco
        pocos tanto tan ante bajo con contra desde durante en entre hacia hasta mediante para por según sin
        sobre tras ni pero sino mas aunque si pues entonces mientras soy eres es somos son era eras eran fue
        fueron ser sido será serán sería sea sean estoy estás está estamos están estaba estaban estar he has ha
        hemos han había habían haber hay habrá hace hacer puede pueden podemos puedo poder debe deben debemos
        debo tiene tienen tenemos tengo tener va van vamos voy ir quiere quiero no más menos muy ya también
        tampoco siempre nunca jamás aún todavía aquí ahí allí ahora luego después antes así bien mal solo sólo
        quizá quizás además embargo
    """,
    "it": """
        a e o i è il lo la gli le un uno una del dello della dei degli delle al allo alla ai agli alle dal dallo
        dalla dai dagli dalle nel nello nella nei negli nelle sul sullo sulla sui sugli sulle col dell all dall
        nell sull di da in con su per tra fra questo questa questi queste quello quella quelli quelle quel quei
        ciò io tu egli lui lei noi voi essi loro mi ti si ci vi ne me te se mio mia miei mie tuo tua tuoi suo
        sua suoi sue nostro nostra nostri vostro che chi cui quale quali quanto quanta quanti dove quando come
        perché ogni ognuno qualche qualcuno qualcosa nessuno nessuna niente nulla tutto tutta tutti tutte altro
        altra altri altre stesso stessa molto molta molti molte poco pochi tanto ed od ma però anche né mentre
        poiché affinché sebbene dunque quindi sono sei siamo siete era ero erano eravamo fu furono essere stato
        stata stati sarà saranno sarebbe sia siano ho hai ha abbiamo avete hanno aveva avevano avere avrà fa
        fare fanno può possono possiamo posso potere deve devono dobbiamo devo va vanno vado vuole voglio c'è
        non più meno già ancora sempre mai qui qua lì là ora adesso poi dopo prima così bene male solo forse
        inoltre senza sotto sopra verso contro durante dell'altro un'altra
    """,
    "pt": """
        a o e é à for forem tiver houver fosse fossem os as um uma uns umas ao aos às do da dos das no na nos
        nas num numa de em por pelo pela pelos pelas este esta estes estas isto esse essa esses essas isso
        aquele aquela aqueles aquelas aquilo eu tu ele ela nós vós eles elas você vocês me te se lhe lhes meu
        minha meus minhas teu tua seu sua seus suas nosso nossa nossos que quem qual quais cujo cuja onde quando
        como quanto quantos porque porquê algum alguma alguns algumas algo alguém nenhum nenhuma nada ninguém
        cada todo toda todos todas tudo outro outra outros outras mesmo mesma muito muita muitos muitas pouco
        com contra desde durante entre até para perante sem sob sobre após ou nem mas porém embora pois enquanto
        então sou és somos são era eram foi foram ser sido será serão seria seja sejam estou está estamos estão
        estava estavam estar tenho tem temos têm tinha tinham ter há havia pode podem podemos posso poder deve
        devem devemos faz fazer vai vão vamos vou ir quer quero não sim mais menos já também sempre nunca jamais
        ainda aqui aí ali agora depois antes assim bem mal só talvez além
    """,
    "nl": """
        de het een der des die dat deze dit ik jij je hij zij ze wij we jullie mij me jou hem haar ons hun hen
        mijn jouw zijn onze zich elkaar wie wat welke welk waar wanneer waarom hoe wiens waarvan waarmee
        waardoor iemand niemand iets niets ieder iedere iedereen elk elke alle alles beide enkele sommige veel
        weinig meer meest ander andere anderen zelf zelfde hetzelfde zulke in op aan van voor met naar bij uit
        over onder tot door tegen tussen zonder om na sinds tijdens volgens binnen buiten achter naast te ten
        ter en of maar want dus noch omdat als indien hoewel terwijl zodat nadat voordat toen ben bent is was
        waren geweest heb hebt heeft hebben had hadden gehad word wordt worden werd werden geworden kan kun kunt
        kunnen kon konden moet moeten moest moesten zal zult zullen zou zouden wil wilt willen wilde mag mogen
        mocht gaat gaan doet doen maakt niet geen nooit altijd vaak soms ook nog al reeds heel zeer erg wel nu
        dan daarna eerst hier daar er eens even weer misschien echter daarom bijvoorbeeld ja nee
    """,
}


@cache
def function_words(language: str) -> frozenset[str]:
    """The closed-class words of a language; none for one that has no list here."""
    return frozenset(_WORDS.get(language, "").split())


LISTED = tuple(_WORDS)
"""Languages that have a list."""
