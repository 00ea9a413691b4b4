// Behavioural model of the two-port SRAM macro behind hw/rtl/two_port_sram.py: to be replaced by the macro of a
// technology. A read and a write a cycle, of different rows, with one write enable a lane.
module kvnode_two_port_sram #(
    parameter ROWS = 1,
    parameter LANES = 1,
    parameter LANE_BITS = 1,
    parameter ADDRESS_BITS = 1
) (
    input                             clk,
    input      [LANES-1:0]            write,
    input      [ADDRESS_BITS-1:0]     write_address,
    input      [LANES*LANE_BITS-1:0]  write_data,
    input                             read,
    input      [ADDRESS_BITS-1:0]     read_address,
    output reg [LANES*LANE_BITS-1:0]  read_data
);
    reg [LANES*LANE_BITS-1:0] mem [0:ROWS-1];
    integer lane;

    always @(posedge clk) begin
        if (read)
            read_data <= mem[read_address];
        for (lane = 0; lane < LANES; lane = lane + 1)
            if (write[lane])
                mem[write_address][lane*LANE_BITS +: LANE_BITS] <= write_data[lane*LANE_BITS +: LANE_BITS];
    end
endmodule
