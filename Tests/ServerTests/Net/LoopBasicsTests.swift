import Testing
@testable import ThicketNet
import ThicketProtocol

@testable import ThicketServer

@Suite("The event loop, live on loopback")
struct LoopBasicsTests {
    @Test("a request is answered, and the connection is kept for the next one")
    func keepAlive() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        for _: Int in 0..<3 {
            try peer.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            let answer = try peer.readResponse()
            #expect(answer.status == 200)
            #expect(answer.body == Array("hello".utf8))
            #expect(answer.fields["date"]?.utf8.count == 29)
        }
        try server.stop()
    }

    @Test("messages of many sizes come back as they were sent")
    func echo() throws {
        var settings = NetSettings()
        settings.messageBytesMax = 2 << 20
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        for size: Int in [0, 1, 125, 126, 65_535, 65_536, 200_000, 1 << 20] {
            let payload: [UInt8] = (0..<size).map { UInt8(0x20 + $0 % 90) }
            try peer.sendFrame(.text, payload)
            #expect(try peer.readAnswer() == .text(payload))
        }
        try server.stop()
    }

    @Test("a graceful stop sends 1001 and notifies the delegate once")
    func stop() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        try server.handle.post { $0.stop(within: .seconds(5)) }
        #expect(try peer.readAnswer() == .close(1001))
        try peer.send(WebSocketWriter.close(.goingAway, mask: 7))
        #expect(try peer.readAnswer() == .end)
        server.waitForEnd()
        #expect(diary.ends == [.stopping])
    }
}
