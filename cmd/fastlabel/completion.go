// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/filetypes"
)

const shells = "bash zsh fish"

// completion prints the script for a shell, made from the same options as the
// flag sets, or what the scripts ask for: the types that a label can have. It is
// "" for what it does not know.
func completion(shell string) string {
	switch shell {
	case "bash":
		return bashCompletion()
	case "zsh":
		return zshCompletion()
	case "fish":
		return fishCompletion()
	case "types":
		return strings.Join(filetypes.Names("/"), "\n") + "\n"
	}
	return ""
}

// names returns the option's spellings.
func (o option) names() []string {
	if o.short == "" {
		return []string{"--" + o.long}
	}
	return []string{"-" + o.short, "--" + o.long}
}

// offered returns the options that the help shows, for the commands in keys.
func offered(keys string) []option {
	var all []option
	for _, o := range options(new(settings)) {
		if o.help != "" && strings.ContainsAny(o.in, keys) {
			all = append(all, o)
		}
	}
	return all
}

func commandNames() []string {
	var names []string
	for _, c := range commands()[1:] {
		names = append(names, c.name)
	}
	return names
}

// bashCompletion finds the command as dispatch does: the first word that is
// neither a flag nor a flag's value. bash splits --flag=value in three.
func bashCompletion() string {
	var values, cases, flags strings.Builder
	var takes []string
	for _, o := range offered(everyCommand) {
		if o.arg == "" {
			continue
		}
		takes = append(takes, o.names()...)
		words := strings.Join(o.names(), "|")
		switch o.offer {
		case "":
			fmt.Fprintf(&values, "    %s) return ;;\n", words)
		case "file":
			fmt.Fprintf(&values, "    %s) _fastlabel_paths -f \"$cur\"; return ;;\n", words)
		case "dir":
			fmt.Fprintf(&values, "    %s) _fastlabel_paths -d \"$cur\"; return ;;\n", words)
		case "type":
			fmt.Fprintf(&values, "    %s) COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" completion types 2>/dev/null)\" -- \"$cur\")); return ;;\n", words)
		default:
			fmt.Fprintf(&values, "    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", words, o.offer)
		}
	}
	for _, c := range commands() {
		var names []string
		for _, o := range offered(c.key) {
			names = append(names, o.names()...)
		}
		fmt.Fprintf(&flags, "    '%s') flags='%s' ;;\n", c.name, strings.Join(names, " "))
	}
	fmt.Fprintf(&cases, "        %s) i=$((i + 1)); [[ ${COMP_WORDS[i]} == = ]] && i=$((i + 1)) ;;\n", strings.Join(takes, "|"))
	return `# bash completion for fastlabel
_fastlabel_paths() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}
_fastlabel() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= ended= first=1 flags= i
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) ended=1 first=; break ;;
` + cases.String() + `        -*) ;;
        ` + strings.Join(commandNames(), "|") + `) [[ $first ]] && cmd=${COMP_WORDS[i]}; first= ;;
        *) first= ;;
        esac
    done
    if [[ $ended ]]; then
        _fastlabel_paths -f "$cur"
        return
    fi
    case $prev in
` + values.String() + `    esac
    case $cmd in
` + flags.String() + `    esac
    case $cur in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")); return ;;
    esac
    case $cmd in
    completion) COMPREPLY=($(compgen -W '` + shells + `' -- "$cur")); return ;;
    version | hook) return ;;
    esac
    _fastlabel_paths -f "$cur"
    [[ $first ]] && COMPREPLY+=($(compgen -W '` + strings.Join(commandNames(), " ") + `' -- "$cur"))
}
complete -F _fastlabel fastlabel
`
}

func zshCompletion() string {
	var b strings.Builder
	b.WriteString("#compdef fastlabel\n_fastlabel() {\n    local cmd=\n")
	fmt.Fprintf(&b, "    if (( CURRENT > 2 )) && [[ $words[2] == (%s) ]]; then\n", strings.Join(commandNames(), "|"))
	b.WriteString("        cmd=$words[2]; words=($words[1] \"${(@)words[3,-1]}\"); (( CURRENT-- ))\n    fi\n    case $cmd in\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "    '%s') _arguments -s -S", c.name)
		for _, o := range offered(c.key) {
			spec := "[" + zshText(o.help) + "]"
			if o.arg != "" {
				spec += ":" + zshText(o.arg) + ":" + zshAction(o.offer)
			}
			again := "(" + strings.Join(o.names(), " ") + ")"
			if o.long == "exclude" {
				again = "*"
			}
			for _, n := range o.names() {
				form := n
				if o.arg != "" {
					form += map[bool]string{true: "=", false: "+"}[strings.HasPrefix(n, "--")]
				}
				fmt.Fprintf(&b, " \\\n        '%s%s%s'", again, form, spec)
			}
		}
		switch c.name {
		case "":
			fmt.Fprintf(&b, " \\\n        '1:command or path:_fastlabel_first' '*:path:_files'")
		case "completion":
			fmt.Fprintf(&b, " \\\n        '1:shell:(%s)'", shells)
		case "version", "hook":
		default:
			fmt.Fprintf(&b, " \\\n        '*:path:_files'")
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("    esac\n}\n_fastlabel_first() {\n")
	fmt.Fprintf(&b, "    _alternative 'commands:command:(%s)' 'files:path:_files'\n}\n", strings.Join(commandNames(), " "))
	b.WriteString("_fastlabel_types() {\n    local -a types\n    types=(${(f)\"$($words[1] completion types 2>/dev/null)\"})\n    compadd -a types\n}\n")
	b.WriteString("if [[ $funcstack[1] == _fastlabel ]]; then _fastlabel \"$@\"; else compdef _fastlabel fastlabel; fi\n")
	return b.String()
}

// zshText escapes what _arguments would take for its own.
func zshText(s string) string {
	return strings.NewReplacer(":", `\:`, "[", `\[`, "]", `\]`, "'", `'\''`).Replace(s)
}

func zshAction(offer string) string {
	switch offer {
	case "":
		return " "
	case "file":
		return "_files"
	case "dir":
		return "_files -/"
	case "type":
		return "_fastlabel_types"
	}
	return "(" + offer + ")"
}

func fishCompletion() string {
	var b strings.Builder
	names := strings.Join(commandNames(), " ")
	b.WriteString("# fish completion for fastlabel\n")
	for _, c := range commands()[1:] {
		fmt.Fprintf(&b, "complete -c fastlabel -n __fish_use_subcommand -a %s -d '%s'\n", c.name, c.about)
	}
	for _, c := range commands() {
		when := "__fish_seen_subcommand_from " + c.name
		if c.name == "" {
			when = "not __fish_seen_subcommand_from " + names
		}
		switch c.name {
		case "completion":
			fmt.Fprintf(&b, "complete -c fastlabel -n '%s' -f -a '%s'\n", when, shells)
		case "version", "hook":
			fmt.Fprintf(&b, "complete -c fastlabel -n '%s' -f\n", when)
		}
		for _, o := range offered(c.key) {
			fmt.Fprintf(&b, "complete -c fastlabel -n '%s' -l %s", when, o.long)
			if o.short != "" {
				fmt.Fprintf(&b, " -s %s", o.short)
			}
			switch {
			case o.arg == "":
			case o.offer == "":
				b.WriteString(" -x")
			case o.offer == "file":
				b.WriteString(" -r -F")
			case o.offer == "type":
				b.WriteString(" -x -a '(fastlabel completion types)'")
			case o.offer == "dir":
				b.WriteString(" -x -a '(__fish_complete_directories)'")
			default:
				fmt.Fprintf(&b, " -x -a '%s'", o.offer)
			}
			fmt.Fprintf(&b, " -d '%s'\n", strings.ReplaceAll(o.help, "'", `\'`))
		}
	}
	return b.String()
}
