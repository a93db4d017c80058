import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses

@testable import ThicketCLI

/// `thicket lock` and `thicket unlock` as they are typed.
@Suite("thicket: locking", .blocking)
struct LockCommandTests {
    private static let cheap: [String: String] = ["THICKET_CHEAP_PASSPHRASES": "1", "XDG_RUNTIME_DIR": ""]
    private static let phrase: [String: String] = cheap.merging(["THICKET_PASSPHRASE": "four green leaves"]) { $1 }

    @Test("a locked profile tells nothing and does nothing until the passphrase is given; then all is as before")
    func lock() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        try bench.good(["put", "notes", "plan", #"{"title":"Oak"}"#])
        try bench.good(["put", "notes", "later", #"{"title":"Elm"}"#, "--offline"])
        let profile: String = try #require(bench.read("home/profiles/default/profile.json"))
        #expect(!profile.contains(bench.token) && !profile.contains("ann@example.com"))

        #expect(try bench.run(["lock"], variables: Self.cheap).code == 2, "nobody is there to ask")
        #expect(try bench.good(["lock"], variables: Self.phrase).hasPrefix("locked the profile 'default'"))
        #expect(try bench.good(["lock"], variables: Self.phrase).contains("locked already"))
        for words: [String] in [
            ["ls", "notes"], ["get", "notes", "plan", "--offline"], ["token", "print"], ["status"], ["whoami"],
            ["login"], ["logout"], ["put", "notes", "plan", "{}", "--offline"],
        ] {
            let outcome: ChildProcess.Outcome = try bench.run(words, variables: Self.cheap)
            #expect(outcome.code == 8 && outcome.errors.contains("thicket unlock"), "\(words): \(outcome)")
            #expect(!outcome.output.contains("Oak"))
        }
        let wrong: [String: String] = Self.cheap.merging(["THICKET_PASSPHRASE": "four green trees"]) { $1 }
        #expect(try bench.run(["unlock"], variables: wrong).code == 6)
        #expect(try bench.good(["unlock"], variables: Self.phrase).hasPrefix("unlocked the profile 'default'"))
        #expect(try bench.good(["get", "notes", "plan", "--path", "title"]) == "Oak\n")
        #expect(try bench.good(["get", "notes", "later", "--path", "title"]) == "Elm\n", "the edit was kept")
        // The passphrase is known by now: none is asked for.
        try bench.good(["lock"], variables: Self.cheap)
        #expect(try bench.run(["ls", "notes"]).code == 8)
    }

    @Test("a passphrase that is given and is not the one that is set locks nothing, and says which option sets another")
    func otherPassphrase() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.good(["unlock"], variables: Self.phrase)
        try bench.write("other", "four green trees\n")
        let other: [String] = ["--passphrase-file", bench.path("other")]
        let refused: ChildProcess.Outcome = try bench.run(["lock"] + other, variables: Self.cheap)
        #expect(refused.code == 6 && refused.errors.contains("--new-passphrase"), "\(refused)")
        try bench.good(["ls", "notes"], variables: Self.cheap)
        // The same one is no other.
        try bench.good(["lock"], variables: Self.phrase)
        try bench.good(["unlock"], variables: Self.phrase)
        try bench.good(["lock", "--new-passphrase"] + other, variables: Self.cheap)
        #expect(try bench.run(["unlock"], variables: Self.phrase).code == 6)
        try bench.good(["unlock"] + other, variables: Self.cheap)
    }

    @Test("of a profile that is locked already another passphrase is told, too")
    func otherPassphraseOfLocked() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.write("same", "four green leaves\n")
        try bench.write("other", "four green trees\n")
        let told: ChildProcess.Outcome = try bench.run(
            ["lock", "--passphrase-file", bench.path("other")], variables: Self.cheap)
        #expect(told.code == 6 && told.errors.contains("locked already, and this is not its passphrase"), "\(told)")
        try bench.good(["lock", "--passphrase-file", bench.path("same")], variables: Self.cheap)
    }

    @Test("a passphrase in the environment keeps nothing open: with another one, or none, it locks and warns")
    func environment() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.write("other", "four green trees\n")
        for (more, warning): ([String: String], String) in [
            (["THICKET_PASSPHRASE_FILE": bench.path("gone")], "was not checked: there is no file"),
            (["THICKET_PASSPHRASE_FILE": bench.path("other")], "is not the one of the profile 'default'"),
            (["THICKET_PASSPHRASE": "four green trees"], "is not the one of the profile 'default'"),
        ] {
            try bench.good(["unlock"], variables: Self.phrase)
            let told: ChildProcess.Outcome = try bench.run(["lock"], variables: Self.cheap.merging(more) { $1 })
            #expect(told.code == 0 && told.errors.contains("warning: "), "\(more): \(told)")
            #expect(told.errors.contains(warning), "\(more): \(told)")
            #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8, "\(more)")
        }
        // A file that the command line names and that is not there is a slip of whoever types it.
        try bench.good(["unlock"], variables: Self.phrase)
        let gone: [String] = ["lock", "--passphrase-file", bench.path("gone")]
        #expect(try bench.run(gone, variables: Self.cheap).code == 2)
    }

    @Test("where there is no memory to check a passphrase nobody is told that it is wrong: it locks, and warns")
    func memory() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.good(["unlock"], variables: Self.phrase)
        try bench.write("same", "four green leaves\n")
        try Self.makeDear(bench.path("home/profiles/default/store.key"))
        // Room for the program, and not for the 1 GiB that the file asks for.
        let poor: [String] = ["/bin/sh", "-c", "ulimit -v 1000000; exec \"$0\" \"$@\"", Programs.thicket]
        let told: ChildProcess.Outcome = try ChildProcess.run(
            poor + ["lock", "--passphrase-file", bench.path("same")], input: "",
            variables: bench.variables("home", Self.cheap))
        #expect(told.code == 0 && told.errors.contains("not checked: there is not enough memory"), "\(told)")
        #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8)
        let closed: ChildProcess.Outcome = try ChildProcess.run(
            poor + ["unlock"], input: "", variables: bench.variables("home", Self.phrase))
        #expect(closed.code == 1 && closed.errors.contains("not enough memory"), "\(closed)")
    }

    /// Makes the file of an unlocked key say that its passphrase is stretched with N = 2^20.
    private static func makeDear(_ path: String) throws {
        guard case .bytes(var bytes) = Files.read(path, bytesMax: 1 << 16) else {
            throw ProcessError("cannot read \(path)")
        }
        // Behind the beginning, the part with the key, the head of the next one and the number of scrypt.
        let place: Int = 16 + (3 + 32) + 3 + 1
        try #require(bytes[place] == 14)
        bytes[place] = 20
        let file: Int32 = open(path, O_WRONLY | O_CLOEXEC)
        try #require(write(file, bytes, bytes.count) == bytes.count)
        close(file)
    }

    @Test("with a folder in memory the unlocked key lies there, and goes with it")
    func runtimeFolder() throws {
        let bench: CommandBench = try .init()
        mkdir(bench.path("run"), 0o700)
        let variables: [String: String] = Self.phrase.merging(["XDG_RUNTIME_DIR": bench.path("run")]) { $1 }
        try bench.login()
        try bench.good(["lock"], variables: variables)
        #expect(try bench.good(["unlock"], variables: variables).contains("until you log out of this machine"))
        try bench.good(["ls", "notes"], variables: variables)
        #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8, "another login of the machine")
        try bench.good(["lock"], variables: variables)
        #expect(try bench.run(["ls", "notes"], variables: variables).code == 8)
    }

    @Test("a logout that cannot take the unlocked key away says so, and the profile is gone all the same")
    func keyLeft() throws {
        let bench: CommandBench = try .init()
        mkdir(bench.path("run"), 0o700)
        let variables: [String: String] = Self.phrase.merging(["XDG_RUNTIME_DIR": bench.path("run")]) { $1 }
        try bench.login()
        try bench.good(["lock"], variables: variables)
        try bench.good(["unlock"], variables: variables)
        let folder: String = bench.path("run")
        let name: String = try #require(Files.names(in: folder).first { $0.hasSuffix(".key") })
        unlink("\(folder)/\(name)")
        mkdir("\(folder)/\(name)", 0o700)
        let outcome: ChildProcess.Outcome = try bench.run(["logout", "--discard"], variables: variables)
        #expect(outcome.code != 0 && outcome.errors.contains("may remain"), "\(outcome)")
        #expect(bench.read("home/profiles/default/profile.json") == nil)
    }

    @Test("a passphrase typed at a terminal is not shown, and is asked for twice when it is new")
    func typed() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        let terminal: PseudoTerminal = try .init(
            [Programs.thicket, "lock"], variables: bench.variables("home", Self.cheap))
        try terminal.wait(forPrinted: "New passphrase")
        terminal.type("four green leaves\n")
        try terminal.wait(forPrinted: "Once more")
        terminal.type("four green leaves\n")
        #expect(try terminal.finish() == 0)
        #expect(!terminal.printed.contains("green"))
        #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8)
        try bench.good(["unlock"], variables: Self.phrase)
    }

    @Test("a key that is damaged or gone is told with the way out, and that is one", arguments: [true, false])
    func lostKey(isThere: Bool) throws {
        let bench: CommandBench = try .init()
        try bench.login()
        try bench.good(["put", "notes", "plan", #"{"title":"Oak"}"#])
        unlink(bench.path("home/profiles/default/store.key"))
        if isThere {
            try bench.write("home/profiles/default/store.key", "no key")
            chmod(bench.path("home/profiles/default/store.key"), 0o600)
        }
        let told: ChildProcess.Outcome = try bench.run(["get", "notes", "plan"])
        #expect(
            told.code == 1 && told.errors.contains("'thicket logout --discard' and then 'thicket login'"), "\(told)")
        _ = try bench.run(["logout", "--discard"])
        try bench.login()
        #expect(try bench.good(["get", "notes", "plan", "--path", "title"]) == "Oak\n")
    }

    @Test(
        "who forgets the passphrase can log out and in again; a profile of an earlier version is sealed when it is locked"
    )
    func otherWays() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        let home: ProfileHome = try .init(["THICKET_HOME": bench.path("home")])
        let kept: Profile = try #require(try home.read("default"))
        try bench.write("home/profiles/default/profile.json", String(decoding: kept.json, as: UTF8.self))
        unlink(bench.path("home/profiles/default/store.key"))
        #expect(try bench.good(["token", "print"]) == bench.token + "\n", "read as it is")
        try bench.good(["lock"], variables: Self.phrase)
        #expect(try #require(bench.read("home/profiles/default/profile.json")).contains(bench.token) == false)
        #expect(try bench.run(["logout"], variables: Self.cheap).code == 8)
        try bench.good(["logout", "--discard"], variables: Self.cheap)
        try bench.login()
        try bench.good(["ls", "notes"])
    }
}
