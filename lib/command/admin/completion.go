package admin

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/connect"
)

var binaries = []string{"smq-admin", "smq-pub", "smq-sub", "smq-broker", "smq-master"}

func newCompletion() *cobra.Command {
	var binary string
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands in a shell",
		Long: `Print a script that completes the commands of a binary in a shell. Topics, segments,
brokers, masters and namespaces are asked from the cluster while one types. The script for bash needs
the package bash-completion, which most systems have installed.`,
		Example: `  source <(smq-admin completion bash)
  source <(smq-admin completion bash --for smq-pub)
  smq-admin completion zsh > "${fpath[1]}/_smq-admin"
  smq-admin completion fish > ~/.config/fish/completions/smq-admin.fish`,
		Args:              cli.Args("SHELL"),
		ValidArgsFunction: connect.OnlyFirst(cli.Words("bash", "zsh", "fish", "powershell")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(binaries, binary) {
				return cli.OneOf("binary", binary, binaries...)
			}
			// The script asks the binary itself for what it completes, so
			// nothing but the name matters.
			tree := &cobra.Command{Use: binary}
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return tree.GenBashCompletionV2(out, true)
			case "zsh":
				return tree.GenZshCompletion(out)
			case "fish":
				return tree.GenFishCompletion(out, true)
			case "powershell":
				return tree.GenPowerShellCompletionWithDesc(out)
			}
			return cli.OneOf("shell", args[0], "bash", "zsh", "fish", "powershell")
		},
	}
	cmd.Flags().StringVar(&binary, "for", "smq-admin", "the `BINARY`: smq-admin, smq-pub, smq-sub, smq-broker or smq-master")
	connect.CompleteWords(cmd, "for", binaries...)
	return cmd
}
