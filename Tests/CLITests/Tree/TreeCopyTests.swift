import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Folders to and from the tree, and what survives kills and full disks.
@Suite("thicket tree: copies", .blocking)
struct TreeCopyTests {
    @Test("a folder comes back as it was; repeated copies send and write nothing; what changed is a new version")
    func folders() throws {
        let homes = try TreeHomes()
        try homes.shell(
            """
            mkdir -p in/a/b in/empty && for i in $(seq 300); do echo "file $i" > in/a/$i.txt; done
            head -c 30000 /dev/urandom > in/a/b/large && : > in/none && echo dot > in/.hidden
            """)
        #expect(try homes.tree("put", "-r", homes.path("in"), "photos") == "303 files: 303 sent, 0 as they were\n")
        #expect(try homes.tree("put", "-r", homes.path("in"), "photos") == "303 files: 0 sent, 303 as they were\n")
        let received = try homes.tree("get", "-r", "photos", homes.path("out"), home: "other")
        #expect(received == "303 files: 303 written, 0 the same already\n")
        try homes.shell("diff -r in out")
        #expect(
            try homes.tree("get", "-r", "photos", homes.path("out"), home: "other")
                == "303 files: 0 written, 303 the same already\n")
        try homes.shell("echo changed > out/a/7.txt && rm out/a/8.txt")
        #expect(
            try homes.tree("put", "-r", homes.path("out"), "photos", home: "other")
                == "302 files: 1 sent, 301 as they were\n")
        #expect(try homes.tree("cat", "photos/a/7.txt", "photos/a/8.txt") == "changed\nfile 8\n")
        #expect(try homes.tree("du", "--depth", "0").contains("\t307 nodes\thome\n"))
        #expect(try homes.tree("find", "--larger", "20K") == "home/photos/a/b/large\n")
        #expect(try homes.tree("log", "--limit", "1").hasSuffix("  v2  home/photos/a/7.txt\n"))
    }

    @Test("a folder goes at the path itself, or below it when the path ends in a slash; files go into a container")
    func targets() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir in && echo x > in/f && echo y > g")
        try homes.tree("put", "-r", homes.path("in"), "at")
        try homes.tree("put", "-r", homes.path("in"), "at")
        try homes.tree("put", "-r", homes.path("in"), "at/")
        try homes.tree("put", homes.path("g"), homes.path("in/f"), "at")
        try homes.tree("put", homes.path("g"), "other")
        #expect(
            try homes.tree("find") == "home/at\nhome/at/f\nhome/at/g\nhome/at/in\nhome/at/in/f\nhome/other\n")
        let two = try homes.run("put", homes.path("g"), homes.path("in/f"), "nowhere")
        #expect(two.code == 2 && two.errors.contains("ends in /"), "\(two)")
        #expect(try homes.run("put", homes.path("in"), "at").code == 2, "a folder without -r")
        mkdir(homes.path("out"), 0o700)
        try homes.tree("get", "at/f", homes.path("out"))
        try homes.tree("get", "-r", "at", homes.path("out") + "/")
        #expect(homes.bench.read("out/f") == "x\n" && homes.bench.read("out/at/in/f") == "x\n")
        #expect(try homes.run("get", "at", homes.path("elsewhere")).code == 2, "a container without -r")
        #expect(try homes.run("get", "at/f", homes.path("nowhere/")).code == 3)
    }

    @Test("links, pipes and names that are not UTF-8 are named and left out, and the rest is sent")
    func special() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir in && cd in && echo x > f && ln -s f link && mkfifo pipe && touch $'b\\xffd'")
        let outcome = try homes.run("put", "-r", homes.path("in"), "in")
        #expect(outcome.code == 1 && outcome.output == "1 file: 1 sent, 0 as they were\n", "\(outcome)")
        for reason in ["link: it is a symbolic link", "pipe: it is a named pipe", "its name is not UTF-8"] {
            #expect(outcome.errors.contains(reason), "\(outcome)")
        }
        #expect(try homes.tree("find", "--type", "file") == "home/in/f\n")
    }

    @Test("a put that was killed goes on in the next one: parts that have arrived are not sent again")
    func killedPut() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 48)
        let received = "thicket_blob_received_bytes_total"
        let put = try homes.start("put", homes.path("large"), "large")
        let reached: UInt64? = Steady.waitFor {
            (try? homes.metric(received)).flatMap { $0 >= 8 << 20 ? $0 : nil }
        }
        put.signal(SIGKILL)
        _ = try put.finish()
        #expect(reached != nil)
        #expect(try homes.tree("ls", home: "other") == "", "nothing is half visible")
        #expect(try homes.tree("put", homes.path("large"), "large") == "home/large is at version 1\n")
        // Three parts of 4 MiB may have been in flight.
        #expect(try homes.metric(received) < (48 + 13) << 20)
        try homes.tree("get", "large", homes.path("copy"), home: "other")
        try homes.shell("cmp large copy")
    }

    @Test("a get that was killed leaves no part under the file's name, and the next one goes on where it was")
    func killedGet() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 48)
        try homes.tree("put", homes.path("large"), "large")
        let sent = "thicket_blob_sent_bytes_total"
        mkdir(homes.path("out"), 0o700)
        let get = try homes.start("get", "large", homes.path("out/large"), home: "other")
        let reached: UInt64? = Steady.waitFor { (try? homes.metric(sent)).flatMap { $0 >= 8 << 20 ? $0 : nil } }
        get.signal(SIGKILL)
        _ = try get.finish()
        #expect(reached != nil)
        #expect(!homes.bench.exists("out/large"))
        try homes.tree("get", "large", homes.path("out/large"), home: "other")
        try homes.shell("cmp large out/large && test $(ls -A out | wc -l) = 1")
        // A request of 1 MiB may have been in flight, and be read to its end by a server that had not noticed.
        #expect(try homes.metric(sent) < 52 << 20)
        #expect(homes.bytes(in: homes.path("other")) < 32 << 20, "the sealed copy is evicted")
    }

    @Test("Ctrl-C keeps what waits and says so, and the next command sends it")
    func interrupted() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 48)
        let put = try homes.start("put", homes.path("large"), "large")
        let isSending: Bool? = Steady.waitFor {
            (try? homes.metric("thicket_blob_received_bytes_total")).flatMap { $0 > 0 ? true : nil }
        }
        #expect(isSending == true)
        // The server answers nothing more: the command cannot end by itself.
        homes.bench.server.process.signal(SIGSTOP)
        put.signal(SIGINT)
        let outcome = try put.finish()
        homes.bench.server.process.signal(SIGCONT)
        #expect(outcome.code == 1 && outcome.errors.contains("interrupted; 1 change is kept here"), "\(outcome)")
        #expect(try homes.tree("queue").contains("create home/large: "))
        try homes.tree("pull")
        try homes.tree("get", "large", homes.path("copy"), home: "other")
        try homes.shell("cmp large copy")
    }

    private static let mayMount = {
        let folder = TemporaryFolder("mount")
        guard mount("tmpfs", folder.path, "tmpfs", 0, "size=64k") == 0 else { return false }
        return umount2(folder.path, Int32(MNT_DETACH)) == 0
    }()

    @Test(
        "a full or read-only target is named with its reason, nothing is left there, and what fits is written",
        .enabled(if: mayMount, "needs the right to mount file systems"))
    func fullTarget() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir in && head -c 300000 /dev/urandom > in/large && echo small > in/small")
        try homes.tree("put", "-r", homes.path("in"), "in")
        for (name, flags, reason) in [
            ("full", UInt(0), "No space left on device"), ("fixed", UInt(MS_RDONLY), "Read-only file system"),
        ] {
            mkdir(homes.path(name), 0o700)
            try #require(mount("tmpfs", homes.path(name), "tmpfs", flags, "size=128k") == 0)
            defer { umount2(homes.path(name), Int32(MNT_DETACH)) }
            let outcome = try homes.run("get", "in/large", homes.path(name), home: "other")
            #expect(outcome.code == 1 && outcome.errors.contains(reason), "\(outcome)")
            #expect(try homes.shell("ls -A \(name)") == "")
            let all = try homes.run("get", "-r", "in", homes.path(name) + "/", home: "other")
            #expect(all.code == 1 && all.errors.contains(reason), "\(all)")
            if flags == 0 { #expect(homes.bench.read("full/in/small") == "small\n") }
            #expect(!homes.bench.exists("\(name)/in/large"))
        }
    }

    @Test(
        "put and get on a full disk of the profile end with that reason, and keep no part that fills it further",
        .enabled(if: mayMount, "needs the right to mount file systems"))
    func fullProfile() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 24)
        try homes.tree("put", homes.path("large"), "large")
        mkdir(homes.path("tight"), 0o700)
        try #require(mount("tmpfs", homes.path("tight"), "tmpfs", 0, "size=16m") == 0)
        defer { umount2(homes.path("tight"), Int32(MNT_DETACH)) }
        try homes.bench.good(["login"] + homes.ann, home: "tight", variables: TreeHomes.password)
        let put = try homes.run("put", homes.path("large"), "again", home: "tight")
        #expect(put.code == 1 && put.errors.contains("the disk is full"), "\(put)")
        let get = try homes.run("get", "large", homes.path("copy"), home: "tight")
        #expect(get.code == 1 && get.errors.contains("the disk is full"), "\(get)")
        #expect(!homes.bench.exists("copy") && homes.bytes(in: homes.path("tight")) < 8 << 20)
        try homes.bench.write("small", "x")
        #expect(try homes.tree("put", homes.path("small"), "small", home: "tight") == "home/small is at version 1\n")
        #expect(try homes.tree("ls") == "large\nsmall\n")
    }

    @Test("a closed output ends a command with 1, and nothing more is written")
    func closedOutput() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 4)
        try homes.tree("put", homes.path("large"), "large")
        let outcome = try ChildProcess.run(
            [
                "/bin/bash", "-c", "\"$0\" tree cat large | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}",
                Programs.thicket,
            ],
            input: "", variables: homes.bench.variables("home", [:]))
        #expect(outcome.output == "1\n", "\(outcome)")
    }

    @Test("on a terminal a bar shows bytes, rate and remaining time; elsewhere nothing but the result is printed")
    func bar() throws {
        let homes = try TreeHomes()
        try homes.makeFile("large", mebibytes: 32)
        let terminal = try PseudoTerminal(
            [Programs.thicket, "tree", "put", homes.path("large"), "large"],
            variables: homes.bench.variables("home", [:]))
        try terminal.wait(forPrinted: "home/large is at version 1")
        #expect(terminal.everShowed("sending  ") && terminal.everShowed(" of 32.0 MiB"))
        #expect(try terminal.finish() == 0)
        let quiet = try homes.run("get", "large", homes.path("copy"))
        #expect(quiet.errors.isEmpty && quiet.output == "\(homes.path("copy")) is written\n", "\(quiet)")
    }

    @Test("a bar fits its terminal, and its numbers are those of the transfer")
    func barLines() {
        let line = TransferBar.line(
            "sending", bytes: 1 << 30, of: 2 << 30, files: 17, ofFiles: 2_000, rate: 24 << 20, columns: 120)
        #expect(line.hasSuffix("  50 %  1.0 GiB of 2.0 GiB  24.0 MiB/s  43 s left  17 of 2000 files"), "\(line)")
        #expect(line.hasPrefix("sending  [####"))
        for columns in 1...200 {
            let line = TransferBar.line(
                "receiving", bytes: .max / 2, of: .max, files: .max, ofFiles: .max, rate: 1, columns: columns)
            #expect(line.count < columns)
        }
        #expect(TransferBar.line("a", bytes: 0, of: 0, files: 0, ofFiles: 1, rate: 0, columns: 80).contains("100 %"))
        #expect(TransferBar.time(59) == "59 s" && TransferBar.time(3_599) == "59 min 59 s")
        #expect(TransferBar.time(7_500) == "2 h 5 min")
    }
}
