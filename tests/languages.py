"""A paragraph in each of some languages, long enough to tell which it is."""

PARAGRAPHS = {
    "en": "The spider builds its web in the evening, when the wind has gone and the garden is quiet. It begins "
    "with a single thread from one branch to another, and before the night is over every corner is connected.",
    "cs": "Pavouk staví svou síť večer, když se vítr utiší a zahrada je klidná. Začíná jediným vláknem od jedné větve "
    "ke druhé, a než noc skončí, je každý kout spojen s ostatními a čeká se na první mouchu.",
    "de": "Die Spinne baut ihr Netz am Abend, wenn der Wind sich gelegt hat und der Garten still ist. Sie beginnt "
    "mit einem einzigen Faden von einem Ast zum anderen, und bevor die Nacht vorbei ist, ist jede Ecke verbunden.",
    "fr": "L'araignée tisse sa toile le soir, quand le vent est tombé et que le jardin est calme. Elle commence par un "
    "seul fil d'une branche à l'autre, et avant la fin de la nuit chaque coin est relié aux autres.",
    "pl": "Pająk buduje swoją sieć wieczorem, kiedy wiatr ucichnie, a ogród jest spokojny. Zaczyna od jednej "
    "nitki między gałęziami, a zanim noc się skończy, każdy kąt jest połączony z pozostałymi.",
    "ru": "Паук плетёт свою сеть вечером, когда ветер утих и в саду стало тихо. Он начинает с одной нити от ветки к "
    "ветке, и прежде чем кончится ночь, все углы оказываются соединены между собой.",
    "ja": "蜘蛛は夕方、風がやんで庭が静かになると巣を作り始めます。まず一本の糸を枝から枝へ渡し、それから少しずつ"
    "輪を広げていきます。夜が明ける前にはすべての角がつながり、蜘蛛は真ん中で朝の最初の虫をじっと待っています。"
    "雨が降ると巣は壊れてしまいますが、次の晩にはまた同じ場所に新しい巣ができているのです。",
}  # fmt: skip
