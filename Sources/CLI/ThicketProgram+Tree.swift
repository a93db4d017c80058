import ThicketCommandLine

/// The commands about the tree of encrypted nodes.
extension ThicketProgram {
    static let tree = [
        treeList, treeOutline, treeCat, treePut, treeGet, treeMakeContainer, treeMove, treeRemove, treeUsage, treeFind,
        treeLog, treeQueue, treeRetry, treeDiscard, treePull, treeWatch, treeAudit, treeExport,
        treeImport,
    ]

    private static let paths = """
        A path is home/trips/plan.md, or trips/plan.md: what does not begin with home/, prefs/, inbox/ or outbox/ is
        below home. A / in a name is written \\/, a \\ is written \\\\.
        """
    private static let sent = """
        Ends when the server has confirmed; what was not confirmed stays here and is sent with the next command on the
        tree. One command at a time uses the tree's copy; 'watch' has a copy of its own.
        """
    private static let pathOption = Argument.optional("PATH", "where; home if it is left out")
    private static let readOffline = Option.flag("offline", "show the copy kept here, without the server")
    private static let changeOffline = Option.flag("offline", "keep the change here; the next command sends it")
    private static let verbose = Option.flag("verbose", short: "v", "a line for each file")

    // MARK: - Reading

    static let treeList = Command(
        "tree ls", summary: "list what is below a place of the tree",
        details: "\(paths)\nA name that ends in / is a container: it has no content, or others are below it.",
        arguments: [pathOption],
        options: [
            .flag("long", short: "l", "also size, version and time"), .flag("newest", "the last changed first"),
            jsonOption, readOffline,
        ] + accountOptions,
        examples: [
            Example("thicket tree ls", "what is in home"), Example("thicket tree ls -l trips", "with sizes"),
            Example("thicket tree ls --json trips | jq -r .path", "for a script"),
        ])

    static let treeOutline = Command(
        "tree tree", summary: "print a branch of the tree, indented",
        details: paths, arguments: [pathOption],
        options: [.value("depth", "N", "levels at most"), jsonOption, readOffline] + accountOptions,
        examples: [Example("thicket tree tree --depth 2", "two levels of home")])

    static let treeCat = Command(
        "tree cat", summary: "write contents to standard output",
        details: """
            Bytes as they are, one content after the other. Nothing is written that was not verified. A content above
            4 MiB that is not here is written while it arrives, and not kept; the download ends with its reader.
            \(paths)
            """,
        arguments: [.atLeastOne("PATH", "nodes with content")],
        options: [.flag("offline", "only contents that are on this machine")] + accountOptions,
        examples: [Example("thicket tree cat trips/plan.md | less", "read a text")])

    static let treeUsage = Command(
        "tree du", summary: "sum up what branches take",
        details: "Bytes of the contents and numbers of nodes; the sum of a place includes all below it.\n\(paths)",
        arguments: [pathOption],
        options: [.value("depth", "N", "levels that are printed", defaultText: "1"), jsonOption, readOffline]
            + accountOptions,
        examples: [Example("thicket tree du --depth 0", "everything in home")])

    static let treeFind = Command(
        "tree find", summary: "find nodes by name, size or kind",
        details: "Prints the paths of all nodes below a place that fit; ends with code 3 when none does.\n\(paths)",
        arguments: [pathOption],
        options: [
            .value("name", "GLOB", "names that fit, such as '*.md'"), .value("type", "TYPE", "file, folder or both"),
            .value("larger", "SIZE", "more bytes than this: 500, 20K, 3M, 1G"),
            .flag("pending", "with changes that the server has not confirmed"),
            .flag("long", short: "l", "also size, version and time"), jsonOption, readOffline,
        ] + accountOptions,
        examples: [Example("thicket tree find --name '*.jpg' --larger 3M trips", "large pictures")])

    static let treeLog = Command(
        "tree log", summary: "list what changed last",
        details: """
            Each node once, with the time of its last change at the server, the newest first. Removed nodes are not
            listed, and neither are earlier changes: 'watch' prints changes as they happen.
            \(paths)
            """,
        arguments: [pathOption],
        options: [.value("limit", "N", "nodes at most", defaultText: "20"), jsonOption, readOffline] + accountOptions,
        examples: [Example("thicket tree log --limit 5", "the last five")])

    // MARK: - Files

    static let treePut = Command(
        "tree put", summary: "copy files or folders to the tree",
        details: """
            The last word is the path in the tree; with one word, files go to home. A path that ends in / names the
            container to copy into, and so does, for a file, a container that exists. A folder (-r) otherwise goes at
            the path itself, as with 'cp -T', so that the same call can be repeated: an interrupted copy goes on where
            it was, and files that the tree has already are left as they are. A node that has another content gets a new
            version. Names are kept exactly. Files whose names are one name in the tree, such as Readme.md and
            README.md, are one node there: the one that the tree has, or the first, is copied, and the others are named
            and left out, with exit code 1; so are links and special files.
            \(paths)
            \(sent)
            """,
        arguments: [
            .one("FILE", "a file, a folder, or '-' for standard input", .file),
            .any("MORE", "more of them, and last the path in the tree", .file),
        ],
        options: [
            .flag("recursive", short: "r", "folders with everything below them"),
            .flag("parents", short: "p", "make the containers of the path"), verbose, jsonOption, changeOffline,
            .value("into", "POINTER", "put files into the drop box that this pointer node is"),
        ] + accountOptions,
        examples: [
            Example("thicket tree put plan.md trips/plan.md", "a file"),
            Example("thicket tree put -r photos home/", "the folder, as home/photos"),
            Example("tar c . | thicket tree put - backup.tar", "from another program"),
        ])

    static let treeGet = Command(
        "tree get", summary: "copy contents from the tree to files",
        details: """
            Without TARGET the file or folder gets the node's name, here. A TARGET that ends in /, or is '.', is the
            folder to copy into, and so is, for a file, a folder that exists. Otherwise a branch (-r) goes at TARGET
            itself, so that the same call can be repeated: an interrupted copy goes on where it was, and files that are
            the same already are left as they are. A file appears when it is whole, with the time of its last change. An
            existing file that differs is replaced only with --force. A / in a name becomes %2F, and is named.
            \(paths)
            """,
        arguments: [.one("PATH", "what to copy"), .optional("TARGET", "where to", .file)],
        options: [
            .flag("recursive", short: "r", "everything below the path"),
            .flag("force", short: "f", "replace files that differ"), verbose, jsonOption,
            .flag("offline", "only contents that are on this machine"),
        ] + accountOptions,
        examples: [
            Example("thicket tree get trips/plan.md", "as plan.md, here"),
            Example("thicket tree get -r photos /tmp/photos", "a branch"),
        ])

    // MARK: - Changes

    static let treeMakeContainer = Command(
        "tree mkdir", summary: "make containers in the tree",
        details: "\(paths)\n\(sent)", arguments: [.atLeastOne("PATH", "what to make")],
        options: [.flag("parents", short: "p", "those above too; one that exists is no error"), changeOffline]
            + accountOptions,
        examples: [Example("thicket tree mkdir -p trips/2026/oslo", "three at most")])

    static let treeMove = Command(
        "tree mv", summary: "move a node, or give it another name",
        details: """
            What is below it comes along. A TARGET that ends in /, or a container that exists, is where the node goes
            under its own name.
            \(paths)
            \(sent)
            """,
        arguments: [.one("PATH", "what to move"), .one("TARGET", "where to")],
        options: [changeOffline] + accountOptions,
        examples: [
            Example("thicket tree mv draft.md plan.md", "a new name"),
            Example("thicket tree mv plan.md trips/", "move"),
        ])

    static let treeRemove = Command(
        "tree rm", summary: "remove nodes from the tree",
        details: "\(paths)\n\(sent)", arguments: [.atLeastOne("PATH", "what to remove")],
        options: [
            .flag("recursive", short: "r", "with everything below"),
            .flag("force", short: "f", "end with code 0 when a node does not exist"), changeOffline,
        ] + accountOptions,
        examples: [Example("thicket tree rm -r trips/2019", "a branch")])

    // MARK: - This machine and the server

    private static let inBranch = Option.value("in", "POINTER", "of the branch of another account that this node is")

    static let treeQueue = Command(
        "tree queue", summary: "list changes that the server has not confirmed",
        details: """
            With the number of each, what it does, and what it waits for. Changes that wait for a decision are sent
            again by 'queue retry' or dropped by 'queue discard'; until then commands on the tree end with code 4.
            """,
        options: [jsonOption, inBranch] + accountOptions, examples: [Example("thicket tree queue", "all of them")])

    static let treeRetry = Command(
        "tree queue retry", summary: "send changes again that wait for a decision",
        details: "In a conflict this machine's content is kept; a node that was removed elsewhere is created again.",
        arguments: [.any("ID", "numbers of 'tree queue'; without them, all that wait for a decision")],
        options: [.flag("all", "every change that waits"), inBranch] + accountOptions,
        examples: [Example("thicket tree queue retry 12", "one of them")])

    static let treeDiscard = Command(
        "tree queue discard", summary: "drop changes that the server has not confirmed",
        details: "The node is again as the server has it; one that the server never had is removed.",
        arguments: [.any("ID", "numbers of 'tree queue'; without them, all that wait for a decision")],
        options: [.flag("all", "every change that waits"), inBranch] + accountOptions,
        examples: [Example("thicket tree queue discard 12", "one of them")])

    static let treePull = Command(
        "tree pull", summary: "bring the copy of the tree up to date, and send what waits",
        details: "\(paths)", arguments: [pathOption],
        options: [.flag("content", "download the contents below the path too, which then stay here")] + accountOptions,
        examples: [
            Example("thicket tree pull", "names and places"),
            Example("thicket tree pull --content trips", "to read without a connection"),
        ])

    static let treeWatch = Command(
        "tree watch", summary: "print what other devices change in the tree, until Ctrl-C",
        details: "Lines begin with + (new), ~ (changed), > (moved) or - (removed), from now on.\n\(paths)",
        arguments: [pathOption],
        options: [jsonOption] + accountOptions,
        examples: [Example("thicket tree watch --json | jq -r .path", "for a script")])

    static let treeAudit = Command(
        "tree audit", summary: "show what the server stores of the tree, next to what you see",
        details: "For up to 100 nodes: the record as the server has it, and the path and size that only you can read.",
        options: [jsonOption] + accountOptions, examples: [Example("thicket tree audit | less", "look")])

    static let treeExport = Command(
        "tree export", summary: "write the tree to a plain folder, from which 'tree import' reads it back exactly",
        details: """
            A file for each node with content, a folder for each node without, escapes for names that no file can have;
            what files cannot hold (pairs, burn times, metadata, thumbnails) is in files that end in %meta. In clear:
            every reader of the folder can read it. The folder is new, empty, or an earlier export, in which files that
            are the same stay and others are replaced only with --force; nothing is removed from it.
            \(paths)
            """,
        arguments: [
            .one("DIR", "the folder", .folder), .optional("PATH", "a branch; the whole tree if it is left out"),
        ],
        options: [
            .flag("force", short: "f", "replace files that differ"), verbose,
            .flag("offline", "only contents that are on this machine"),
        ] + accountOptions,
        examples: [Example("thicket tree export backup", "everything")])

    static let treeImport = Command(
        "tree import", summary: "read a folder into the tree that 'tree export' has written",
        details: """
            Each node goes where it was. One that exists and differs gets a new version; nothing is removed from the
            tree. The same call can be repeated after an interruption.
            \(sent)
            """,
        arguments: [.one("DIR", "the folder", .folder)],
        options: [verbose, jsonOption, changeOffline] + accountOptions,
        examples: [Example("thicket tree import backup", "everything")])
}
