import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketThreats

/// Contents that are sealed once, whatever becomes of the file, the program and the machine.
@Suite("Nonces of trees", .blocking, .timeLimit(.minutes(15)))
struct TreeSealsTests {
    @Test("A18: uploads that are killed, whose file changes, and whose machine is restored use no nonce twice")
    func snapshots() throws {
        let house = try ThreatHouse("tree-seals")
        let record = TemporaryFolder("tree-seals-file")
        let file = record.path + "/seals"
        let ann = TreeRun(house, "tree-seals-home", ["THICKET_SEALS": file])
        try ann.signUp()
        try ann.signUp("login", home: "two")
        try ann.shell("for n in 1 2 3; do head -c 13M /dev/urandom > film$n; done; cp film1 film; echo 1 > note")
        try ann.run(["tree", "put", "--offline", ann.path("film"), "film"])
        try ann.run(["tree", "put", "--offline", ann.path("note"), "note"])
        // Before the upload, and in the middle of it.
        try ann.shell("cp -a one before")
        let upload = try ann.start(["tree", "pull"])
        let blobs = house.folder.path
        let isSending = Steady.waitFor { Self.bytes(in: blobs) > 4 << 20 || upload.hasEnded ? true : nil }
        #expect(isSending == true)
        upload.signal(SIGKILL)
        _ = try upload.finish()
        try ann.shell("cp -a one middle && cp film2 film && echo 2 > note")
        try ann.run(["tree", "put", ann.path("film"), "film"], codes: [0, 4])
        try ann.run(["tree", "put", ann.path("note"), "note"], codes: [0, 4])
        let before = SealsTests.pairs(file).count
        for (snapshot, number) in [("middle", 3), ("before", 1), ("middle", 2)] {
            try ann.shell("rm -rf one && cp -a \(snapshot) one && cp film\(number) film")
            try ann.shell("echo \(snapshot)\(number) > note")
            // The old upload goes on, and the other device's newer content is a conflict.
            for name in ["film", "note"] { try ann.run(["tree", "put", ann.path(name), name], codes: [0, 4]) }
            try ann.run(["tree", "queue", "retry"], codes: [0, 3, 4])
            try ann.run(["tree", "pull"], codes: [0, 4])
        }
        let (count, twice) = SealsTests.pairs(file)
        #expect(before > 500 && count > before + 200, "\(before), \(count)")
        #expect(twice == 0)
        // What another machine reads is one of the files, never a mixture.
        try ann.run(["tree", "get", "film", ann.path("copy")], home: "two")
        try ann.shell("cmp -s copy film1 || cmp -s copy film2 || cmp -s copy film3")
        // Counterproof: one more seal with the first one's key and nonce is seen.
        try ann.shell("(cat \(file); head -c 20 \(file); head -c 16 /dev/urandom) > forged")
        #expect(SealsTests.pairs(ann.path("forged")).twice == 1)
    }

    private static func bytes(in folder: String) -> Int {
        ThreatHouse.files(folder).filter { $0.path.contains("blob") }.reduce(0) { $0 + $1.bytes.count }
    }
}
