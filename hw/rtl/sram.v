// Behavioural model of the single-port SRAM macro behind hw/rtl/sram.py: to be replaced by the macro of a technology.
// One access a cycle: a write of the lanes marked in `write`, or, with none marked, a read.
module kvnode_sram #(
    parameter ROWS = 1,
    parameter LANES = 1,
    parameter LANE_BITS = 1,
    parameter ADDRESS_BITS = 1
) (
    input                             clk,
    input                             enable,
    input      [LANES-1:0]            write,
    input      [ADDRESS_BITS-1:0]     address,
    input      [LANES*LANE_BITS-1:0]  write_data,
    output reg [LANES*LANE_BITS-1:0]  read_data
);
    reg [LANES*LANE_BITS-1:0] mem [0:ROWS-1];
    integer lane;

    always @(posedge clk)
        if (enable) begin
            if (write == 0)
                read_data <= mem[address];
            for (lane = 0; lane < LANES; lane = lane + 1)
                if (write[lane])
                    mem[address][lane*LANE_BITS +: LANE_BITS] <= write_data[lane*LANE_BITS +: LANE_BITS];
        end
endmodule
