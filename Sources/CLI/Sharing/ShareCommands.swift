import ThicketCommandLine

/// The commands about branches that several accounts have.
enum ShareCommands {
    static let all = [share, permissions, unshare, shared, invite, accept, leave]

    private static let accountOptions = ThicketProgram.accountOptions

    private static let letters = """
        LETTERS: r reads, w writes, s shares further; and of what a member makes: R without content, L with nothing
        below, U only one, W written once, B may be removed again. A member with s adds members, changes their letters
        and removes them, by the path of its pointer node; only you decide which members have s. W or U without r is a
        drop box: the member puts files into it ('thicket tree put FILE --into'), and neither lists nor reads it.
        """
    private static let path = Argument.one("PATH", "the node; everything below it comes along")

    private static let share = Command(
        "tree share", summary: "let other accounts into a branch of the tree",
        details: """
            USER:LETTERS gives other letters than r. Members that are there already stay. Nothing is encrypted again:
            one record is written, whatever the size of the branch. Members learn of it by 'thicket tree invite'.
            \(letters)
            USER is a login name, a contact, or the id of an account. The branch's key is sealed for keys that the
            server's key log proves, and for no others (exit code 9 for an alarm, and for keys that were replaced
            without a signature of the old ones).
            """,
        arguments: [path, .atLeastOne("USER", "an account; USER:rw may also write")], options: accountOptions,
        examples: [Example("thicket tree share trips/oslo ben:rw cem", "ben may write, cem may read")])

    private static let permissions = Command(
        "tree perm", summary: "give a member of a shared branch other letters",
        details: """
            Without r or w that it had, the branch gets another key, as after 'thicket tree unshare'.
            \(letters)
            """,
        arguments: [path, .one("USER", "a member"), .one("LETTERS", "all that it may do from now on")],
        options: accountOptions, examples: [Example("thicket tree perm trips/oslo cem rw", "cem may write too")])

    private static let unshare = Command(
        "tree unshare", summary: "remove a member from a shared branch, or end sharing",
        details: """
            The server serves the branch no more to a removed member, and what is written from now on has keys that it
            does not have. What it could read before it may have kept. Without USER, all members.
            With --rekey each node gets another key, and its content is encrypted again and uploaded: then nothing that
            the server stores opens for the removed member. A command that is interrupted goes on with the next
            'thicket tree pull'.
            """,
        arguments: [path, .optional("USER", "a member")],
        options: [.flag("rekey", "give the whole branch other keys")] + accountOptions,
        examples: [
            Example("thicket tree unshare trips/oslo cem --rekey", "and everything is encrypted again"),
            Example("thicket tree unshare trips/oslo cem", "one member"),
            Example("thicket tree unshare trips/oslo", "the branch is yours alone again"),
        ])

    private static let shared = Command(
        "tree shared", summary: "list shared branches: your own with their members, and those of others",
        details: """
            Of a branch of another account, whether it is still shared with you, and your letters. Requests of members to
            leave are named.
            """,
        options: [ThicketProgram.jsonOption, .flag("offline", "show the copies kept here, without the server")]
            + accountOptions,
        examples: [Example("thicket tree shared", "all of them")])

    private static let invite = Command(
        "tree invite", summary: "send members of a shared branch an invitation",
        details: "It is a message to the inbox; 'thicket tree accept' accepts it. Repeat it when it was lost.",
        arguments: [path, .atLeastOne("USER", "a member")], options: [ThicketProgram.jsonOption] + accountOptions,
        examples: [Example("thicket tree invite trips/oslo ben cem", "two members")])

    private static let accept = Command(
        "tree accept", summary: "accept an invitation: the branch appears in the tree",
        details: """
            Makes a pointer node. A path that passes through it is in the branch, for ls, tree, du, find, log, cat, get,
            put, mkdir, mv and rm; the other commands, and copies of what is above it, end at it. Without INVITE the
            only one that waits; 'thicket tree inbox' lists them.
            """,
        arguments: [.optional("INVITE", "the message: its path or its id")],
        options: [.value("at", "PATH", "where the pointer node is made", defaultText: "home/NAME")] + accountOptions,
        examples: [Example("thicket tree accept --at from-ann", "the only invitation")])

    private static let leave = Command(
        "tree leave", summary: "leave a branch of another account",
        details: """
            Removes the pointer node and the copy on this machine, and asks the owner by a message to remove you from the
            list. Changes in the branch that were not sent are lost; with any, the command ends before (exit code 5).
            """,
        arguments: [.one("PATH", "the pointer node")],
        options: [.flag("force", short: "f", "drop changes that were not sent")] + accountOptions,
        examples: [Example("thicket tree leave from-ann", "ann is asked to remove you")])
}
