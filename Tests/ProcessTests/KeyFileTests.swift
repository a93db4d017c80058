import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Partners and the key file, by the commands that operators use.
@Suite("Partners by command", .blocking)
struct KeyFileTests {
    private let folder = TemporaryFolder("keyfile")

    private func run(_ words: String...) throws -> ChildProcess.Outcome { try Daemon.command(folder.path, words) }

    @Test("the key file has mode 0600; a lost one is not replaced, and with a foreign one nothing is changed")
    func keyFile() throws {
        #expect(try run("partner", "create").code == 0)
        let path = folder.path + "/server.key"
        var info = stat()
        #expect(stat(path, &info) == 0 && info.st_mode & 0o777 == 0o600 && info.st_size == 32)
        #expect(rename(path, path + ".away") == 0)
        for words in [["partner", "list"], ["partner", "create"], ["serve"], ["key", "check"]] {
            let lost = try Daemon.command(folder.path, words)
            #expect(lost.code == 1 && lost.errors.contains("restore the original file"), "\(lost)")
        }
        #expect(access(path, F_OK) != 0)
        #expect(try Daemon.command(folder.path, ["partner", "list", "--key-file", path + ".away"]).code == 0)
        try writeKey(path)
        let list = try run("partner", "list")
        #expect(list.code == 0 && list.errors.contains("not the one by which the database is sealed"))
        for words in [
            ["partner", "rotate", "1000"], ["partner", "create"], ["partner", "disable", "1000"], ["key", "check"],
            ["partner", "api-key", "1000", "--new"], ["key", "rotate"], ["serve"],
        ] {
            let refused = try Daemon.command(folder.path, words)
            #expect(refused.code == 1 && refused.errors.contains("nothing was changed. Restore"), "\(refused)")
            #expect(refused.output.isEmpty, "\(words)")
        }
        #expect(rename(path + ".away", path) == 0)
        #expect(try run("key", "check").output.hasSuffix("opens the keys of 1 of 1 partner\n"))
        #expect(try run("partner", "list").output.contains("\t1 auth key\t"))
    }

    private func writeKey(_ path: String) throws {
        let made = try ChildProcess.run([
            "/bin/sh", "-c", "head -c 32 /dev/urandom > \(path); chmod 600 \(path)",
        ])
        #expect(made.code == 0)
    }

    /// `api key  72278fb2-…` in the output of a command.
    private func value(_ name: String, _ output: String) throws -> String {
        let line: Substring? = output.split(separator: "\n").first { $0.hasPrefix(name) }
        return String(try #require(line?.split(separator: " ").last, "\(output)"))
    }

    @Test("the advice about a lost key file works: the partner's apps and its server are admitted again")
    func lost() throws {
        let made = try run("partner", "create").output
        let (apiKey, path) = (try value("api key", made), folder.path + "/server.key")
        #expect(try run("app", "create", "shop", "--partner", "1000").code == 0)
        #expect(unlink(path) == 0)
        let refused = try run("serve", "--listen", "127.0.0.1:0")
        #expect(refused.code == 1 && refused.errors.contains("'thicketd key abandon' continues without it"))
        let abandoned = try run("key", "abandon")
        #expect(abandoned.code == 0, "\(abandoned)")
        #expect(abandoned.errors.contains("thicketd partner api-key 1000 --file FILE"))
        #expect(try run("partner", "list").output.contains("api key lost"))
        let server = try Daemon(folder: folder.path)
        let again = try Daemon.command(
            folder.path, ["partner", "api-key", "1000", "--file", "-"], input: apiKey + "\n")
        #expect(again.code == 0 && again.errors.contains("refused from now on"), "\(again)")
        let rotated = try run("partner", "rotate", "1000")
        #expect(rotated.errors.contains("has an auth key: its users can log in from now on"))
        #expect(try run("partner", "list").output.contains("api key \(apiKey)\t1 auth key\t0 users\tshop"))
        let inUse = try run("key", "rotate")
        #expect(inUse.code == 3, "a running server has the key in memory: \(inUse)")
        _ = try server.terminate()
        #expect(try run("backup", folder.path + "/before.db").code == 0)
        let rotation = try run("key", "rotate")
        #expect(rotation.code == 0 && rotation.output.contains("1 API key and 1 auth key of partners"), "\(rotation)")
        #expect(try run("key", "check").code == 0)
        let restored = try run("restore", folder.path + "/before.db")
        #expect(restored.code == 0 && restored.errors.contains("sealed by a key file other than"), "\(restored)")
        #expect(rename(path + ".replaced-1", path) == 0)
        #expect(try run("restore", folder.path + "/before.db").errors.isEmpty)
        #expect(try run("key", "check").code == 0)
    }

    @Test("as long as nothing was sealed no key file can be rotated, and none is lost")
    func unmarked() throws {
        #expect(try run("app", "create", "notes").code == 0)
        for words in [["key", "rotate"], ["key", "check"]] {
            let outcome = try Daemon.command(folder.path, words)
            #expect(outcome.code == 1 && !outcome.errors.contains("restore the original"), "\(outcome)")
            #expect(
                outcome.errors.contains("server.key does not exist: the server's first start creates it"), "\(outcome)")
        }
        #expect(try run("key", "abandon").output.contains("nothing is lost"))
        #expect(try run("key", "rotate").code == 0)
    }

    @Test("an interrupted rotation of the key file is reported, and the next start resolves it")
    func interrupted() throws {
        #expect(try run("partner", "create").code == 0)
        let path = folder.path + "/server.key"
        try writeKey(path + ".new")
        for words in [["partner", "list"], ["partner", "rotate", "1000"], ["key", "check"]] {
            let reported = try Daemon.command(folder.path, words)
            #expect(
                reported.code == 1 && reported.errors.contains("'thicketd serve' or 'thicketd key rotate' finishes it"))
        }
        let outcome = try Daemon(folder: folder.path).terminate()
        #expect(outcome.errors.contains("event=key_rotation.undone"))
        #expect(access(path + ".new", F_OK) != 0)
        #expect(try run("key", "check").code == 0)
    }

    @Test("partner rotate reports which keys are valid; the list is ordered by number and shows no auth key")
    func rotation() throws {
        #expect(try run("partner", "create").code == 0)
        #expect(try run("partner", "add", "--id", "317", "--api-key", "72278fb2-34a0-7058", "--no-auth-key").code == 0)
        let first = try run("partner", "rotate", "317")
        #expect(first.errors.contains("has an auth key: its users can log in from now on"))
        let second = try run("partner", "rotate", "317")
        #expect(second.errors.contains("before it stays good.") && !second.errors.contains("older one"))
        let third = try run("partner", "rotate", "317")
        #expect(third.errors.contains("The older one is no longer valid."))
        let list = try run("partner", "list").output
        #expect(list.split(separator: "\n").map { $0.prefix { $0 != "\t" } } == ["317", "1000"])
        #expect(list.contains("2 auth keys\t0 users") && list.contains("1 auth key\t"))
        for outcome in [first, second, third] {
            let key: Substring = outcome.output.dropFirst("auth key ".count).prefix { $0 != "\n" }
            #expect(key.utf8.count == 88 && !list.contains(key))
        }
        #expect(try run("partner", "disable", "9").errors.contains("thicketd partner list"))
    }
}
