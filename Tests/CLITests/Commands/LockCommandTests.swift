import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses

@testable import ThicketCLI

/// `thicket lock` and `thicket unlock` as a user types them.
@Suite("thicket: locking", .blocking)
struct LockCommandTests {
    private static let cheap = ["THICKET_CHEAP_PASSPHRASES": "1", "XDG_RUNTIME_DIR": ""]
    private static let phrase = cheap.merging(["THICKET_PASSPHRASE": "four green leaves"]) { $1 }

    @Test("a locked profile shows nothing and does nothing until the passphrase is given; then all is as before")
    func lock() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "plan", #"{"title":"Oak"}"#])
        try bench.good(["put", "notes", "later", #"{"title":"Elm"}"#, "--offline"])
        let profile = try #require(bench.read("home/profiles/default/profile.json"))
        #expect(!profile.contains(bench.token) && !profile.contains("ann@example.com"))

        #expect(try bench.run(["lock"], variables: Self.cheap).code == 2, "no terminal to ask at")
        #expect(try bench.good(["lock"], variables: Self.phrase).hasPrefix("locked the profile 'default'"))
        #expect(try bench.good(["lock"], variables: Self.phrase).contains("locked already"))
        for words in [
            ["ls", "notes"], ["get", "notes", "plan", "--offline"], ["token", "print"], ["status"], ["whoami"],
            ["login"], ["logout"], ["put", "notes", "plan", "{}", "--offline"],
        ] {
            let outcome = try bench.run(words, variables: Self.cheap)
            #expect(outcome.code == 8 && outcome.errors.contains("thicket unlock"), "\(words): \(outcome)")
            #expect(!outcome.output.contains("Oak"))
        }
        let wrong = Self.cheap.merging(["THICKET_PASSPHRASE": "four green trees"]) { $1 }
        #expect(try bench.run(["unlock"], variables: wrong).code == 6)
        #expect(try bench.good(["unlock"], variables: Self.phrase).hasPrefix("unlocked the profile 'default'"))
        #expect(try bench.good(["get", "notes", "plan", "--path", "title"]) == "Oak\n")
        #expect(try bench.good(["get", "notes", "later", "--path", "title"]) == "Elm\n", "the edit was kept")
        // The passphrase is known by now, so none is asked for.
        try bench.good(["lock"], variables: Self.cheap)
        #expect(try bench.run(["ls", "notes"]).code == 8)
    }

    @Test("a passphrase other than the one that is set locks nothing; the message names the option that sets another")
    func otherPassphrase() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.good(["unlock"], variables: Self.phrase)
        try bench.write("other", "four green trees\n")
        let other = ["--passphrase-file", bench.path("other")]
        let refused = try bench.run(["lock"] + other, variables: Self.cheap)
        #expect(refused.code == 6 && refused.errors.contains("--new-passphrase"), "\(refused)")
        try bench.good(["ls", "notes"], variables: Self.cheap)
        // The same passphrase is accepted.
        try bench.good(["lock"], variables: Self.phrase)
        try bench.good(["unlock"], variables: Self.phrase)
        try bench.good(["lock", "--new-passphrase"] + other, variables: Self.cheap)
        #expect(try bench.run(["unlock"], variables: Self.phrase).code == 6)
        try bench.good(["unlock"] + other, variables: Self.cheap)
    }

    @Test("lock reports another passphrase also for a profile that is locked already")
    func otherPassphraseOfLocked() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.write("same", "four green leaves\n")
        try bench.write("other", "four green trees\n")
        let reported = try bench.run(
            ["lock", "--passphrase-file", bench.path("other")], variables: Self.cheap)
        #expect(
            reported.code == 6 && reported.errors.contains("locked already, and this is not its passphrase"),
            "\(reported)")
        try bench.good(["lock", "--passphrase-file", bench.path("same")], variables: Self.cheap)
    }

    @Test("a passphrase in the environment keeps nothing open: if it is another or missing, lock locks and warns")
    func environment() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.write("other", "four green trees\n")
        for (more, warning) in [
            (["THICKET_PASSPHRASE_FILE": bench.path("gone")], "was not checked: there is no file"),
            (["THICKET_PASSPHRASE_FILE": bench.path("other")], "is not the one of the profile 'default'"),
            (["THICKET_PASSPHRASE": "four green trees"], "is not the one of the profile 'default'"),
        ] {
            try bench.good(["unlock"], variables: Self.phrase)
            let reported = try bench.run(["lock"], variables: Self.cheap.merging(more) { $1 })
            #expect(reported.code == 0 && reported.errors.contains("warning: "), "\(more): \(reported)")
            #expect(reported.errors.contains(warning), "\(more): \(reported)")
            #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8, "\(more)")
        }
        // A file that the command line names and that does not exist is an error of the command line.
        try bench.good(["unlock"], variables: Self.phrase)
        let gone = ["lock", "--passphrase-file", bench.path("gone")]
        #expect(try bench.run(gone, variables: Self.cheap).code == 2)
    }

    @Test("without the memory to check a passphrase lock does not call it wrong: it locks, and warns")
    func memory() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["lock"], variables: Self.phrase)
        try bench.good(["unlock"], variables: Self.phrase)
        try bench.write("same", "four green leaves\n")
        try Self.makeDear(bench.path("home/profiles/default/store.key"))
        // Enough for the program, and not for the 1 GiB that the file asks for.
        let poor = ["/bin/sh", "-c", "ulimit -v 1000000; exec \"$0\" \"$@\"", Programs.thicket]
        let reported = try ChildProcess.run(
            poor + ["lock", "--passphrase-file", bench.path("same")], input: "",
            variables: bench.variables("home", Self.cheap))
        #expect(
            reported.code == 0 && reported.errors.contains("not checked: there is not enough memory"), "\(reported)")
        #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8)
        let closed = try ChildProcess.run(
            poor + ["unlock"], input: "", variables: bench.variables("home", Self.phrase))
        #expect(closed.code == 1 && closed.errors.contains("not enough memory"), "\(closed)")
    }

    /// Makes the file of an unlocked key say that its passphrase is stretched with N = 2^20.
    private static func makeDear(_ path: String) throws {
        guard case .bytes(var bytes) = Files.read(path, bytesMax: 1 << 16) else {
            throw ProcessError("cannot read \(path)")
        }
        // After the beginning, the part with the key, the head of the next one and the number of scrypt.
        let place = 16 + (3 + 32) + 3 + 1
        try #require(bytes[place] == 14)
        bytes[place] = 20
        let file = open(path, O_WRONLY | O_CLOEXEC)
        try #require(write(file, bytes, bytes.count) == bytes.count)
        close(file)
    }

    @Test("the unlocked key is stored in a folder in memory if it exists, and is gone with that folder")
    func runtimeFolder() throws {
        let bench = try CommandBench()
        mkdir(bench.path("run"), 0o700)
        let variables = Self.phrase.merging(["XDG_RUNTIME_DIR": bench.path("run")]) { $1 }
        try bench.login()
        try bench.good(["lock"], variables: variables)
        #expect(try bench.good(["unlock"], variables: variables).contains("until you log out of this machine"))
        try bench.good(["ls", "notes"], variables: variables)
        #expect(try bench.run(["ls", "notes"], variables: Self.cheap).code == 8, "another login of the machine")
        try bench.good(["lock"], variables: variables)
        #expect(try bench.run(["ls", "notes"], variables: variables).code == 8)
    }

    @Test("a logout that cannot remove the unlocked key says so, and the profile is removed all the same")
    func keyLeft() throws {
        let bench = try CommandBench()
        mkdir(bench.path("run"), 0o700)
        let variables = Self.phrase.merging(["XDG_RUNTIME_DIR": bench.path("run")]) { $1 }
        try bench.login()
        try bench.good(["lock"], variables: variables)
        try bench.good(["unlock"], variables: variables)
        let folder = bench.path("run")
        let name = try #require(Files.names(in: folder).first { $0.hasSuffix(".key") })
        unlink("\(folder)/\(name)")
        mkdir("\(folder)/\(name)", 0o700)
        let outcome = try bench.run(["logout", "--discard"], variables: variables)
        #expect(outcome.code != 0 && outcome.errors.contains("may remain"), "\(outcome)")
        #expect(bench.read("home/profiles/default/profile.json") == nil)
    }

    @Test("a passphrase typed at a terminal is not shown, and is asked for twice when it is new")
    func typed() throws {
        let bench = try CommandBench()
        try bench.login()
        let terminal = try PseudoTerminal(
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

    @Test("a damaged or missing key is reported with the way out, and that works", arguments: [true, false])
    func lostKey(isThere: Bool) throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "plan", #"{"title":"Oak"}"#])
        unlink(bench.path("home/profiles/default/store.key"))
        if isThere {
            try bench.write("home/profiles/default/store.key", "no key")
            chmod(bench.path("home/profiles/default/store.key"), 0o600)
        }
        let reported = try bench.run(["get", "notes", "plan"])
        #expect(
            reported.code == 1 && reported.errors.contains("'thicket logout --discard' and then 'thicket login'"),
            "\(reported)")
        _ = try bench.run(["logout", "--discard"])
        try bench.login()
        #expect(try bench.good(["get", "notes", "plan", "--path", "title"]) == "Oak\n")
    }

    @Test(
        "a user without the passphrase can log out and in again; locking seals a profile of an earlier version"
    )
    func otherWays() throws {
        let bench = try CommandBench()
        try bench.login()
        let home = try ProfileHome(["THICKET_HOME": bench.path("home")])
        let kept = try #require(try home.read("default"))
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
