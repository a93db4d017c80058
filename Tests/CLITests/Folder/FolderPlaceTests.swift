import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketCLI

/// Paths where a file belongs and something else is, with the real programs.
@Suite("thicket: folders that contain other things than files", .blocking)
struct FolderPlaceTests {
    private static let once = ["--once"]

    /// Objects in a bucket, and a folder that has none of them.
    private func bench(_ keys: [String]) throws -> CommandBench {
        let bench = try CommandBench()
        try bench.login()
        for key in keys { try bench.good(["put", "docs", key, #"{"text":"of the bucket\n"}"#]) }
        mkdir(bench.path("m"), 0o700)
        return bench
    }

    @Test(
        "--once names what occupies a file's place, mirrors the rest and ends with 1; a later run writes freed places"
    )
    func occupied() throws {
        let bench = try bench(["dir.md", "linked.md", "pipe.md", "socket.md", "nowhere.md", "free.md"])
        mkdir(bench.path("m/dir.md"), 0o700)
        mkdir(bench.path("elsewhere"), 0o700)
        symlink(bench.path("elsewhere"), bench.path("m/linked.md"))
        mkfifo(bench.path("m/pipe.md"), 0o600)
        symlink(bench.path("missing"), bench.path("m/nowhere.md"))
        #expect(mknod(bench.path("m/socket.md"), S_IFSOCK | 0o600, 0) == 0)
        try bench.write("m/mine.md", "of the folder\n")
        let places = ["dir.md", "linked.md", "pipe.md", "socket.md", "nowhere.md"]
        for _ in 0..<2 {
            let outcome = try bench.run(["mirror", bench.path("m"), "docs"] + Self.once)
            #expect(outcome.code == 1, "\(outcome)")
            for place in places {
                #expect(outcome.errors.contains("\(place) is left alone: it is a"), "\(place): \(outcome.errors)")
            }
            #expect(bench.read("m/free.md") == "of the bucket\n")
        }
        #expect(try bench.good(["get", "docs", "mine.md", "--path", "text"]) == "of the folder\n")
        // No object of the bucket was taken for deleted.
        #expect(try bench.good(["ls", "docs"]).split(separator: "\n").count == 7)
        rmdir(bench.path("m/dir.md"))
        for place in places.dropFirst() { unlink(bench.path("m/" + place)) }
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        for place in places { #expect(bench.read("m/" + place) == "of the bucket\n", "\(place)") }
        #expect(bench.exists("elsewhere") && !bench.exists("missing"))
    }

    @Test("a file that a folder has replaced is not taken for deleted")
    func replaced() throws {
        let bench = try bench(["plan.md"])
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        unlink(bench.path("m/plan.md"))
        mkdir(bench.path("m/plan.md"), 0o700)
        let outcome = try bench.run(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(outcome.code == 1 && outcome.errors.contains("plan.md is left alone: it is a folder"), "\(outcome)")
        #expect(try bench.good(["get", "docs", "plan.md", "--path", "text"]) == "of the bucket\n")
    }

    @Test("a running mirror writes the file once its place is free, and does not use a core meanwhile")
    func live() throws {
        let bench = try bench(["plan.md"])
        mkdir(bench.path("m/plan.md"), 0o700)
        let mirror = try bench.start(["mirror", bench.path("m"), "docs"])
        try mirror.wait(for: "plan.md is left alone: it is a folder")
        try mirror.wait(for: "mirroring")
        try bench.write("m/other.md", "goes on\n")
        try mirror.wait(for: "sent other.md")
        rmdir(bench.path("m/plan.md"))
        try mirror.wait(for: "received plan.md")
        #expect(bench.read("m/plan.md") == "of the bucket\n")
        mirror.signal(SIGINT)
        #expect(try mirror.finish().code == 0)
    }

    @Test(
        "a link to a file is written through and stays a link; removing the object removes the link, not its file")
    func links() throws {
        let bench = try bench(["plan.md"])
        try bench.write("behind.md", "of the bucket\n")
        symlink(bench.path("behind.md"), bench.path("m/plan.md"))
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        try bench.good(["put", "docs", "plan.md", #"{"text":"newer\n"}"#])
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(bench.read("behind.md") == "newer\n")
        var link = [CChar](repeating: 0, count: 4_096)
        #expect(readlink(bench.path("m/plan.md"), &link, link.count) > 0)
        try bench.write("behind.md", "typed behind it\n")
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(try bench.good(["get", "docs", "plan.md", "--path", "text"]) == "typed behind it\n")
        try bench.good(["rm", "docs", "plan.md"])
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(!bench.exists("m/plan.md") && bench.read("behind.md") == "typed behind it\n")
    }

    @Test("keys too long for a file name are named by mirror and export in the same words, with code 1")
    func longKeys() throws {
        let bench = try CommandBench()
        try bench.login()
        let long = String(repeating: "k", count: 252)
        try bench.good(["put", "docs", long, #"{"n":1}"#])
        try bench.good(["put", "docs", "short", #"{"n":1}"#])
        let words = "the key is too long for a file name"
        let mirrored = try bench.run(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(mirrored.code == 1 && mirrored.errors.contains("\(long) is left alone: \(words)"), "\(mirrored)")
        let exported = try bench.run(["export", "docs", bench.path("out")])
        #expect(exported.code == 1 && exported.errors.contains("\(long): \(words)"), "\(exported)")
        #expect(bench.exists("m/short.json") && bench.exists("out/short.json"))
    }

    @Test("a path too long for the system is named, and its file is written once the path is shorter")
    func longPaths() throws {
        let long = String(repeating: "k", count: 200)
        let bench = try bench(["free.md", long])
        // Within the system's 4,096 bytes with a short name, beyond them with a long one.
        let part = String(repeating: "d", count: 200)
        var deep = bench.path("deep")
        mkdir(deep, 0o700)
        while deep.utf8.count < 3_920 {
            deep += "/" + part.prefix(3_920 - deep.utf8.count)
            try #require(mkdir(deep, 0o700) == 0)
        }
        let outcome = try bench.run(["export", "docs", deep])
        #expect(outcome.code == 1 && outcome.errors.contains("\(long): "), "\(outcome)")
        #expect(outcome.errors.contains("cannot be read: File name too long"), "\(outcome.errors)")
        #expect(Files.read(deep + "/free.md", bytesMax: 100) == .bytes(Array("of the bucket\n".utf8)))
        try #require(rename(bench.path("deep/" + part), bench.path("near")) == 0)
        let near = bench.path("near") + deep.dropFirst(bench.path("deep/" + part).utf8.count)
        try bench.good(["export", "docs", near])
        #expect(Files.stamp(near + "/" + long) != nil)
    }

    @Test("a mirrored file under a name that an older program chose stays, and stays one object")
    func olderName() throws {
        let bench = try CommandBench()
        try bench.login()
        let name = String(repeating: "日", count: 60) + ".txt"
        mkdir(bench.path("m"), 0o700)
        let key = try FileName(file: name).key
        try bench.write("m/=" + key, "of an older program\n")
        for _ in 0..<2 { try bench.good(["mirror", bench.path("m"), "docs"] + Self.once) }
        let listed = try bench.good(["ls", "docs"])
        #expect(listed.hasPrefix(key + " ") && listed.split(separator: "\n").count == 1, "\(listed)")
        #expect(!bench.exists("m/" + name) && bench.read("m/=" + key) == "of an older program\n")
    }

    @Test("import reads the file behind a link; links to a folder and to nothing are named")
    func importedLinks() throws {
        let bench = try bench([])
        mkdir(bench.path("elsewhere"), 0o700)
        try bench.write("elsewhere/behind.md", "behind it\n")
        try bench.write("elsewhere/behind.json", #"{"n":1}"#)
        symlink(bench.path("elsewhere/behind.md"), bench.path("m/a.md"))
        symlink("../elsewhere/behind.json", bench.path("m/b.json"))
        // A link to a link.
        symlink("a.md", bench.path("m/c.md"))
        symlink(bench.path("elsewhere"), bench.path("m/folder.md"))
        symlink(bench.path("missing"), bench.path("m/nowhere.md"))
        let outcome = try bench.run(["import", "docs", bench.path("m")])
        #expect(outcome.code == 1 && outcome.output.contains("3 files read"), "\(outcome)")
        for name in ["folder.md", "nowhere.md"] { #expect(outcome.errors.contains("\(name): "), "\(outcome)") }
        #expect(try bench.good(["get", "docs", "a.md", "--path", "text"]) == "behind it\n")
        #expect(try bench.good(["get", "docs", "b", "--json"]) == "{\"n\":1}\n")
        #expect(try bench.good(["get", "docs", "c.md", "--path", "text"]) == "behind it\n")
        #expect(try bench.good(["ls", "docs"]).split(separator: "\n").count == 3)
    }

    @Test("export leaves a different file behind a link alone; --force writes it through the link, which stays a link")
    func exportedLinks() throws {
        let bench = try bench(["plan.md", "same.md", "nowhere.md"])
        try bench.write("behind.md", "other words\n")
        chmod(bench.path("behind.md"), 0o640)
        try bench.write("same-behind.md", "of the bucket\n")
        symlink("../behind.md", bench.path("m/plan.md"))
        symlink(bench.path("same-behind.md"), bench.path("m/same.md"))
        symlink(bench.path("missing"), bench.path("m/nowhere.md"))
        let kept = try bench.run(["export", "docs", bench.path("m")])
        #expect(kept.code == 1 && kept.errors.contains("plan.md: a different file"), "\(kept)")
        #expect(kept.output.contains("1 the same already") && bench.read("behind.md") == "other words\n", "\(kept)")
        let forced = try bench.run(["export", "docs", bench.path("m"), "--force"])
        #expect(
            forced.code == 1 && forced.errors.contains("nowhere.md: it is a link that leads to nothing"), "\(forced)")
        #expect(bench.read("behind.md") == "of the bucket\n" && !bench.exists("missing"))
        for name in ["plan.md", "same.md", "nowhere.md"] {
            var link = [CChar](repeating: 0, count: 4_096)
            #expect(readlink(bench.path("m/" + name), &link, link.count) > 0, "\(name)")
        }
        var status = stat()
        #expect(stat(bench.path("behind.md"), &status) == 0 && status.st_mode & 0o777 == 0o640, "its rights stay")
    }

    @Test("long names of all scripts, imported and exported, are the same files")
    func scripts() throws {
        let bench = try bench([])
        var names = RandomNames(seed: 8)
        var files = [String: String]()
        var keys = Set<String>()
        while files.count < 60 {
            let name = names.next()
            guard !name.hasSuffix(".json"), let file = try? FileName(file: name), keys.insert(file.key).inserted else {
                continue
            }
            files[name] = "number \(files.count)\n"
            try bench.write("m/" + name, files[name] ?? "")
        }
        try bench.good(["import", "docs", bench.path("m")])
        try bench.good(["export", "docs", bench.path("out")])
        try bench.good(["mirror", bench.path("mirrored"), "docs"] + Self.once)
        for folder in ["out", "mirrored"] {
            let found = Files.names(in: bench.path(folder)).filter { !$0.hasPrefix(".") }
            #expect(Set(found.map { Array($0.utf8) }) == Set(files.keys.map { Array($0.utf8) }))
            for (name, text) in files { #expect(bench.read("\(folder)/\(name)") == text, "\(name)") }
        }
    }

    /// Mounts a separate file system in the bench's folder while `body` runs.
    private func mounted(
        _ bench: CommandBench, _ name: String, _ settings: String, isReadOnly: Bool = false,
        _ body: (String) throws -> Void
    ) throws {
        let place = bench.path(name)
        mkdir(place, 0o700)
        try #require(mount("tmpfs", place, "tmpfs", isReadOnly ? UInt(MS_RDONLY) : 0, settings) == 0)
        defer { umount2(place, Int32(MNT_DETACH)) }
        try body(place)
    }

    private static let mayMount = {
        let folder = TemporaryFolder("mount")
        guard mount("tmpfs", folder.path, "tmpfs", 0, "size=64k") == 0 else { return false }
        return umount2(folder.path, Int32(MNT_DETACH)) == 0
    }()

    @Test(
        "a write that a full disk, a read-only disk or a file in use prevents is named, and the rest is written",
        .enabled(if: mayMount, "needs the right to mount file systems"))
    func disks() throws {
        let bench = try bench(["a.md", "b.md"])
        try bench.write("big.json", #"{"text":"\#(String(repeating: "x", count: 200_000))"}"#)
        try bench.good(["put", "docs", "big.md", "@" + bench.path("big.json")])
        try mounted(bench, "full", "size=64k") { place in
            let outcome = try bench.run(["export", "docs", place])
            #expect(outcome.code == 1 && outcome.errors.contains("big.md: cannot write"), "\(outcome)")
            #expect(outcome.errors.contains("No space left on device"), "\(outcome)")
            #expect(bench.read("full/a.md") == "of the bucket\n" && bench.read("full/b.md") == "of the bucket\n")
            #expect(!bench.exists("full/big.md"))
        }
        try mounted(bench, "fixed", "size=64k", isReadOnly: true) { place in
            let outcome = try bench.run(["export", "docs", place])
            #expect(outcome.code == 1 && outcome.errors.contains("a.md: cannot write"), "\(outcome)")
            #expect(outcome.errors.ranges(of: "Read-only file system").count == 3, "\(outcome)")
        }
        // A file that is its own mount cannot be replaced.
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        let file = bench.path("m/a.md")
        for key in ["a.md", "b.md"] { try bench.good(["put", "docs", key, #"{"text":"newer\n"}"#]) }
        try #require(mount(file, file, nil, UInt(MS_BIND), nil) == 0)
        let outcome = try bench.run(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(umount2(file, Int32(MNT_DETACH)) == 0)
        #expect(outcome.code == 1 && outcome.errors.contains("a.md is left alone: cannot write"), "\(outcome)")
        #expect(bench.read("m/b.md") == "newer\n" && bench.read("m/a.md") == "of the bucket\n")
        try bench.good(["mirror", bench.path("m"), "docs"] + Self.once)
        #expect(bench.read("m/a.md") == "newer\n")
        #expect(try bench.good(["ls", "docs"]).split(separator: "\n").count == 3)
    }

    @Test("export names what it cannot write and writes the rest")
    func exported() throws {
        let bench = try bench(["dir.md", "pipe.md", "free.md"])
        mkdir(bench.path("out"), 0o700)
        mkdir(bench.path("out/dir.md"), 0o700)
        mkfifo(bench.path("out/pipe.md"), 0o600)
        for force in [[], ["--force"]] {
            let outcome = try bench.run(["export", "docs", bench.path("out")] + force)
            #expect(outcome.code == 1 && outcome.errors.contains("dir.md: it is a folder"), "\(outcome)")
            #expect(outcome.errors.contains("pipe.md: it is a named pipe"), "\(outcome)")
            #expect(bench.read("out/free.md") == "of the bucket\n")
        }
        let imported = try bench.run(["import", "docs", bench.path("out")])
        #expect(imported.code == 1 && imported.errors.contains("pipe.md: it is a named pipe"), "\(imported)")
    }
}
