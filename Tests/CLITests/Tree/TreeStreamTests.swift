import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// `thicket tree cat` of large contents, tokens that may only read, and a server whose disk is full.
@Suite("thicket tree: large contents, rights and full servers", .blocking)
struct TreeStreamTests {
    @Test("cat writes a large content while it arrives, and ends the download when its reader has enough")
    func streamed() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 16)
        try homes.tree("put", homes.path("large"), "large")
        func cat(_ rest: String, home: String = "other") throws -> String {
            try ChildProcess.run(
                ["/bin/bash", "-c", "cd \"$1\" && \"$0\" tree cat large \(rest)", Programs.thicket, homes.path(".")],
                input: "", variables: homes.bench.variables(home, [:])
            ).output
        }
        let before = try homes.metric("thicket_blob_sent_bytes_total")
        #expect(try cat("| head -c 1000000 | cmp -n 1000000 - large && echo same") == "same\n")
        let stopped = try homes.metric("thicket_blob_sent_bytes_total")
        #expect(stopped > before && stopped - before < 6 << 20, "\(stopped - before) bytes were sent")
        // Nothing of it is kept here.
        #expect(homes.bytes(in: homes.path("other")) < 2 << 20)
        #expect(try cat("| cmp - large && echo same") == "same\n")
        let whole = try homes.metric("thicket_blob_sent_bytes_total")
        #expect(whole - stopped >= 16 << 20)
        // A content that is on this machine is not asked for.
        #expect(try cat("| cmp - large && echo same", home: "home") == "same\n")
        #expect(try homes.metric("thicket_blob_sent_bytes_total") == whole)
    }

    @Test("a token that may only read: reading works, each change ends with its reason, and is kept or undone as said")
    func readOnly() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "content")
        try homes.shell("head -c 100000 /dev/urandom > large")
        try homes.tree("put", homes.path("f"), "f")
        let home = try ProfileHome(["THICKET_HOME": homes.path("other")])
        var profile = try #require(try home.read("default"))
        let token = profile.token
        profile.token = try homes.bench.token(user: profile.login?.userId ?? "ann", readOnly: true)
        try home.write(profile, "default")
        #expect(try homes.tree("ls", home: "other") == "f\n")
        #expect(try homes.tree("cat", "f", home: "other") == "content")
        for words in [
            ["put", homes.path("f"), "g"], ["put", homes.path("large"), "h"], ["mkdir", "a"], ["rm", "f"],
            ["mv", "f", "k"],
        ] {
            let outcome = try homes.bench.run(["tree"] + words, home: "other")
            #expect(outcome.code == 4 && outcome.output.isEmpty, "\(words) \(outcome)")
            #expect(outcome.errors.contains("read"), "\(words) \(outcome)")
        }
        #expect(try homes.tree("ls") == "f\n" && homes.tree("ls", home: "other") == "f\n")
        // What was made offline waits, and another token sends it.
        try homes.tree("put", "--offline", homes.path("f"), "later", home: "other")
        #expect(try homes.run("pull", home: "other").code == 4)
        let row = try JSONValue(parsing: Array(try homes.tree("queue", "--json", home: "other").utf8))
        #expect(row["state"]?.stringValue == "refused" && row["path"]?.stringValue == "home/later")
        profile.token = token
        try home.write(profile, "default")
        try homes.tree("queue", "retry", home: "other")
        #expect(try homes.tree("cat", "later") == "content")
    }

    private static let mayMount = {
        let folder = TemporaryFolder("mount")
        guard mount("tmpfs", folder.path, "tmpfs", 0, "size=64k") == 0 else { return false }
        return umount2(folder.path, Int32(MNT_DETACH)) == 0
    }()

    @Test(
        "a server with a full disk is reported with this reason by put, and the upload goes on with space",
        .enabled(if: mayMount, "needs the right to mount file systems"))
    func fullServer() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 24)
        try homes.bench.stopServer()
        try homes.shell("mv data kept && mkdir data")
        try #require(mount("tmpfs", homes.path("data"), "tmpfs", 0, "size=200m") == 0)
        defer { umount2(homes.path("data"), Int32(MNT_DETACH)) }
        try homes.shell(
            "cp -a kept/. data/ && fallocate -l $(($(df --output=avail -k data | tail -1) - 9000))K data/other")
        try homes.bench.startServer()
        let put = try homes.run("put", "--timeout", "5s", homes.path("large"), "large")
        #expect(put.code == 5 && put.output.isEmpty, "\(put)")
        #expect(put.errors.contains("the server's disk is full (507)"), "\(put)")
        #expect(put.errors.contains("the change is kept here"), "\(put)")
        #expect(try homes.tree("ls") == "large\n" && homes.tree("ls", home: "other") == "")
        // The reason is kept with the change: another command knows it, without asking the server.
        let queued = try homes.tree("queue")
        #expect(queued.contains("home/large") && queued.contains("the server's disk is full (507)"), "\(queued)")
        let row = try JSONValue(parsing: Array(try homes.tree("queue", "--json").utf8))
        #expect(row["state"]?.stringValue == "waiting" && row["trouble"]?.stringValue?.contains("507") == true)
        let json = try homes.run("put", "--json", "--timeout", "3s", homes.path("large"), "large")
        let line = try JSONValue(parsing: Array(json.output.utf8))
        #expect(json.code == 5 && line["path"]?.stringValue == "home/large", "\(json)")
        #expect(line["outcome"]?.stringValue == "kept" && line["version"] == nil, "\(json)")
        #expect(line["reason"]?.stringValue?.contains("the server's disk is full (507)") == true, "\(json)")
        // A command that waits for the server sees it too.
        let waiting = try homes.start("pull", "--timeout", "20s")
        unlink(homes.path("data/other"))
        let pulled = try waiting.finish()
        #expect(pulled.code == 0, "\(pulled)")
        #expect(try homes.tree("queue") == "")
        try homes.tree("get", "large", homes.path("copy"), home: "other")
        try homes.shell("cmp large copy")
    }
}
