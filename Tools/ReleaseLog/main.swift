// thicket-release: keeps the log of releases; `./dev release` runs it.
import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

private let logOption = Option.value("log", "FILE", "the log of releases", completion: .file)
private let releaseOption = Option.value("release", "VERSION", "which release, such as 0.1.0")

private let program = Program(
    name: "thicket-release", summary: "the log of Thicket's releases", version: "1",
    commands: [
        Command(
            "key", summary: "make the key that signs the log, and print its public half",
            details:
                "The file is for its owner only. It is made once, kept off the machines that build, and copied to a safe place.",
            arguments: [.one("FILE", "where the key will lie; nothing may be there", .file)],
            examples: [Example("thicket-release key signing.key", "once")]),
        Command(
            "add", summary: "append a release to the log, and sign its new head",
            arguments: [.atLeastOne("PROGRAM", "the programs of the release")],
            options: [
                logOption, releaseOption, .value("key", "FILE", "the signing key", completion: .file),
                .value("commit", "HASH", "the commit they were built of, 40 hex digits"),
            ],
            examples: [
                Example(
                    "thicket-release add --log Release/log.jsonl --key signing.key --release 0.1.0 "
                        + "--commit 42812b2dfb6b2d1b9ad6ac4ee4f3dce4d2b0b9be thicketd thicket", "two programs")
            ]),
        Command(
            "prove", summary: "print the proof of a release, which is published beside its programs",
            options: [logOption, releaseOption],
            examples: [Example("thicket-release prove --log Release/log.jsonl --release 0.1.0 > release.json", "write")]
        ),
        Command(
            "check", summary: "check every line of the log, its heads and their signatures",
            options: [logOption, .value("public", "KEY", "the public key, 64 hex digits")],
            examples: [
                Example(
                    "thicket-release check --log Release/log.jsonl "
                        + "--public 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "all of it")
            ]),
    ])

exit(await program.main(Array(CommandLine.arguments.dropFirst()), ReleaseTool.run))
