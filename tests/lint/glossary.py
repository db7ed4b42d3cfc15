"""Reads lines "code PATH" and "text PATH" and prints the findings of glossary.sh. The argument is the list of terms."""
import re
import sys

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
COMMENT_COLUMNS, TEXT_COLUMNS = 100, 120


def read_terms(path):
    terms = []
    for line in open(path, encoding='utf-8'):
        if line.strip() and not line.startswith('#'):
            pattern, instead = line.rstrip('\n').split('\t')
            terms.append((re.compile(pattern, re.I), instead))
    return terms


def parts_of_code(text):
    """Comments and strings as (line number, text of the line, is it a comment)."""
    for match in COMMENT.finditer(text):
        first = text.count('\n', 0, match.start()) + 1
        for at, line in enumerate(match.group(0).split('\n')):
            yield first + at, line, match.group(0)[0] == '/'


def parts_of_document(text):
    """Lines outside of code blocks, without `code`; the glossary's own rows name what is out of use."""
    fenced, glossary = False, False
    for at, line in enumerate(text.split('\n'), 1):
        fenced ^= line.startswith('```')
        glossary = line == '## Glossary' or (glossary and not line.startswith('## '))
        if not fenced and not line.startswith('    ') and not (glossary and line.startswith('|')):
            yield at, re.sub(r'`[^`]*`', '``', line), True


def is_too_long(kind, line, most):
    return len(line) > most and (kind == 'code' or not line.lstrip().startswith(('|', '[', '!', '<', 'http')))


def look_at(kind, path, terms):
    text = open(path, encoding='utf-8', errors='replace').read()
    lines = text.split('\n')
    most = COMMENT_COLUMNS if kind == 'code' else TEXT_COLUMNS
    for at, part, is_prose in (parts_of_code if kind == 'code' else parts_of_document)(text):
        for pattern, instead in terms:
            match = pattern.search(part)
            if match:
                print(f'{path}:{at}: "{match.group(0)}" is out of use: {instead}')
        if is_prose and is_too_long(kind, lines[at - 1], most):
            print(f'{path}:{at}: the line has {len(lines[at - 1])} columns, more than {most}: break it')


for request in sys.stdin:
    look_at(*request.rstrip('\n').split(' ', 1), read_terms(sys.argv[1]))
